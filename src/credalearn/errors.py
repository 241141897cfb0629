"""The errors that credalearn raises on purpose, and the one warning it gives."""


class CredalError(ValueError):
    """Bad input: the message names the rule, the place, the value and the remedy.

    Example:
        >>> import credalearn as cl
        >>> try:
        ...     cl.LowerBounds([[0.9, 0.3]])
        ... except cl.CredalError as error:
        ...     print(str(error).split(";")[0])
        sum(lower) <= 1 must hold, or the set is empty
    """

    @property
    def reason(self) -> str:
        """The message without the remedy and the full stop, to be quoted in another message."""
        return str(self).partition(" To fix:")[0].rstrip(".")


class TrainingError(RuntimeError):
    """Training cannot go on: the loss is not finite, or the checkpoint is another run's.

    Example:
        >>> import credalearn as cl
        >>> issubclass(cl.TrainingError, RuntimeError)
        True
    """


class PrecisionWarning(UserWarning):
    """A numerical search stopped at its cap of steps before it reached its tolerance.

    Example:
        >>> import credalearn as cl
        >>> issubclass(cl.PrecisionWarning, UserWarning)
        True
    """
