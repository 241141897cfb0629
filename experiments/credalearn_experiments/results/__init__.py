"""From records to people: tables, figures, differences, and the published figures next to ours."""
