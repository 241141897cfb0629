"""The credal risk profile as a line from 0: a picture of HTML alone, with its words."""

import math

from credalearn.app.report.html import Html, element, short_percent
from credalearn.theory import RiskProfile

_ROOM = 1.25  # beyond the largest number: its label stands there


def nats(risk: float) -> str:
    """A risk to three decimals; an infinite one as its sign.

    Example:
        >>> nats(0.5), nats(math.inf)
        ('0.500', '∞')
    """
    return "∞" if math.isinf(risk) else f"{risk:.3f}"


def risk_line(profile: RiskProfile, num_classes: int) -> Html:
    """From the optimistic to the pessimistic risk, their intervals, and the uniform guess.

    Args:
        profile: The two risks.
        num_classes: K; the uniform guess is at log K.

    Example:
        >>> profile = RiskProfile(
        ...     optimistic=0.31, pessimistic=0.62, optimistic_interval=(0.28, 0.35),
        ...     pessimistic_interval=(0.57, 0.68), items=400, confidence=0.95,
        ... )
        >>> print(risk_line(profile, 2).split('aria-label="')[1].split(",")[0])
        A line from 0 to 0.866 nats: a bar from 0.310 to 0.620
    """
    guess = math.log(num_classes)
    ends = (*profile.optimistic_interval, *profile.pessimistic_interval)
    numbers = (guess, profile.optimistic, profile.pessimistic, *ends)
    largest = _ROOM * max(number for number in numbers if math.isfinite(number))

    def place(risk: float) -> float:
        """Per cent of the line; the end of it for an infinite risk."""
        return 100 * min(risk / largest, 1) if largest else 0.0

    def piece(class_: str, low: float, high: float) -> Html:
        width = place(high) - place(low)
        return element("i", class_=class_, style=f"left:{place(low):.2f}%;width:{width:.2f}%")

    open_ended = " open" if math.isinf(profile.pessimistic) else ""
    side = "after" if place(guess) < 50 else "before"  # the half with more room
    edge = f"left:{place(guess):.2f}%" if side == "after" else f"right:{100 - place(guess):.2f}%"
    # Near 0 both labels would leave the line or meet.
    best, worst = nats(profile.optimistic), nats(profile.pessimistic)
    low_end = f"right:min(100% - 3.2rem, {100 - place(profile.optimistic):.2f}%)"
    high_end = f"left:max(3.2rem, {place(profile.pessimistic):.2f}%)"
    return element(
        "div",
        element("i", class_="line"),
        piece(f"between{open_ended}", profile.optimistic, profile.pessimistic),
        piece("spread", *profile.optimistic_interval),
        piece("spread", *profile.pessimistic_interval) if not open_ended else "",
        piece("guess", guess, guess),
        element("b", best, class_="low", style=low_end),
        element("b", worst, class_=f"high{open_ended}", style=high_end) if worst != best else "",
        element("span", "0", class_="zero"),
        element("span", f"uniform guess {nats(guess)}", class_=side, style=edge),
        class_="risk",
        role="img",
        aria_label=_label(profile, guess, largest),
    )


def _label(profile: RiskProfile, guess: float, largest: float) -> str:
    sure = short_percent(profile.confidence)
    low, high = (
        f"{nats(ends[0])} to {nats(ends[1])}"
        for ends in (profile.optimistic_interval, profile.pessimistic_interval)
    )
    return (
        f"A line from 0 to {nats(largest)} nats: a bar from {nats(profile.optimistic)} to "
        f"{nats(profile.pessimistic)}, the credal risk profile; {sure} intervals of its ends "
        f"{low} and {high}; a mark at {nats(guess)}, the uniform guess."
    )
