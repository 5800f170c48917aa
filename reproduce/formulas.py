"""Formulas of the documentation as MathML, which a browser draws without a script or a network."""

from __future__ import annotations

__all__ = ["to_mathml"]


def to_mathml(formula: str, *, display: bool) -> str:
    """Return a formula as MathML, with the formula as it was written for those who copy it.

    Args:
        formula: As written in a page, in LaTeX without the dollars.
        display: Whether it stands on a line of its own.

    Raises:
        ValueError: The formula is no LaTeX that can be drawn; the message has the formula.
    """
    # Only those who build the documentation, or test it, have this.
    from math_core import LatexError, LatexToMathML

    try:
        drawn = LatexToMathML(annotation=True).convert_with_local_state(
            formula, displaystyle=display
        )
    except LatexError as error:
        raise ValueError(f"formula {formula!r}: {error}") from error
    return str(drawn)
