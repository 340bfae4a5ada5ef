"""Which of six kinds a finished piece of work is of: by its shape and by what is said in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from hypatia_mem.capture.immediate import parse
from hypatia_mem.memory.extract import cues
from hypatia_mem.memory.extract.topics import Exchange, closes, is_thin
from hypatia_mem.memory.summarise import facts, words

__all__ = ["Kind", "corrections", "is_correction", "kind_of"]


_CONFIRMED = 12  # words of an answer that only says it is done


class Kind(StrEnum):
    """What a work unit is of; nothing is kept of a trivial one."""

    ONE_SHOT = "one-shot"
    CORRECTION_CHAIN = "correction-chain"
    EXPLORATION = "exploration"
    BUG_FIX = "bug-fix"
    DESIGN_DECISION = "design-decision"
    TRIVIAL = "trivial"


def kind_of(exchanges: Sequence[Exchange]) -> Kind:
    """Return the kind of a topic's exchanges; at least one is given."""
    said = [one for one in exchanges if not is_thin(one.asked) and not closes(one.asked)]
    if not said or _is_trivial(said):
        return Kind.TRIVIAL
    answered = "\n".join(one.answered for one in said)
    thanked = any(closes(one.asked) for one in exchanges)
    if _is_bug(said, answered, thanked=thanked):
        return Kind.BUG_FIX
    if _is_choice(said[0].asked) and _is_decided(exchanges):
        return Kind.DESIGN_DECISION
    if corrections(exchanges):
        return Kind.CORRECTION_CHAIN
    asking = sum(_asks(one.asked) for one in said)
    if len(said) > 1 and asking * 2 >= len(said):
        return Kind.EXPLORATION
    return Kind.ONE_SHOT if len(said) <= 2 else Kind.EXPLORATION


def corrections(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Return the exchanges in which a person sets an answer before them right.

    They say so, or the answer owns it ("Changed: ...") to what was no question.
    """
    found = []
    for one in exchanges[1:]:
        owned = cues.REVISES.search(one.answered) is not None
        if is_correction(one.asked) or (owned and not _asks(one.asked) and not closes(one.asked)):
            found.append(one)
    return found


def is_correction(text: str) -> bool:
    """Tell whether a person says that it should have been otherwise."""
    return cues.CORRECTS.search(text) is not None and not is_thin(text) and not _asks(text)


def _asks(text: str) -> bool:
    return text.rstrip(" .!)").endswith(("?", "？", "吗", "呢", "か")) or bool(
        cues.EXPLORES.match(text.lstrip("¿ "))
    )


def _is_choice(text: str) -> bool:
    """Tell whether a person asks which of two or more ways to go."""
    return cues.CHOICE.search(text) is not None or (
        _asks(text) and re.search(r"\b(?:or|oder|ou|o)\b|还是|どちら", text) is not None
    )


def _is_decided(exchanges: Sequence[Exchange]) -> bool:
    """Tell whether the person, or the last answer, says which way is taken."""
    later = "\n".join(one.asked for one in exchanges[1:])
    said = cues.DECIDES.search(later) is not None
    return said or (cues.DECIDES.search(exchanges[-1].answered) is not None)


def _is_bug(said: Sequence[Exchange], answered: str, *, thanked: bool) -> bool:
    """A fault was reported by the person, and in the answers its cause was found or it was mended.

    Without a word of a fault, a complaint counts that was explained or mended: a statement that is
    no order and no wish.
    """
    first = said[0].asked
    if _is_choice(first) or cues.EXPLORES.match(first):
        return False
    caused = cues.CAUSE.search(answered) is not None
    mended = cues.DONE.search(answered) is not None or cues.NOW_GOOD.search(answered) is not None
    if cues.ERROR.search(first) is not None:
        return mended or (caused and len(said) == 1)
    opening = re.split(r"(?<=[.!?。！？])\s*", first.strip(), maxsplit=1)[0]
    told = cues.ORDERS.search(first) or cues.WANTS.search(first) or _asks(opening)
    return not told and mended and (caused or thanked or len(said) == 1)


def _is_trivial(said: Sequence[Exchange]) -> bool:
    """Nothing but talk, or one short question with a short answer that names nothing.

    So is a wish to remember or to forget that was only confirmed: it is kept already, or is gone.
    """
    if all(words.cost(one.answered) <= _CONFIRMED and parse(one.asked) for one in said):
        return True
    if all(cues.CHATS.match(one.asked) and words.cost(one.asked) <= 12 for one in said):
        return True
    if len(said) > 1 or facts.tokens(said[0].answered) or facts.tokens(said[0].asked):
        return False
    one = said[0]
    short = words.cost(one.asked) <= 14 and words.cost(one.answered) <= 25
    return short and not facts.is_marked(one.asked)
