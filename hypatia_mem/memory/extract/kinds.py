"""Which of six kinds a finished piece of work is of: by its shape and by what is said in it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from hypatia_mem.memory.extract import cues
from hypatia_mem.memory.extract.topics import Exchange, closes, is_thin
from hypatia_mem.memory.summarise import facts, words

__all__ = ["Kind", "corrections", "is_correction", "kind_of"]


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
    asked = "\n".join(one.asked for one in said)
    answered = "\n".join(one.answered for one in said)
    wrong = len(corrections(exchanges))
    if _is_bug(exchanges, said, answered):
        return Kind.BUG_FIX
    if cues.CHOICE.search(asked) and (cues.DECIDES.search(asked) or facts.is_decision(answered)):
        return Kind.DESIGN_DECISION
    if wrong:
        return Kind.CORRECTION_CHAIN
    if cues.CHOICE.search(said[0].asked):
        return Kind.DESIGN_DECISION
    open_ended = sum(cues.EXPLORES.search(one.asked) is not None for one in said)
    if len(said) > 1 and open_ended * 2 >= len(said):
        return Kind.EXPLORATION
    return Kind.ONE_SHOT if len(said) <= 2 else Kind.EXPLORATION


def corrections(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Return the exchanges in which a person sets an answer before them right."""
    return [one for one in exchanges[1:] if is_correction(one.asked)]


def is_correction(text: str) -> bool:
    """Tell whether a person says that it should have been otherwise."""
    return cues.CORRECTS.search(text) is not None and not is_thin(text)


def _is_bug(exchanges: Sequence[Exchange], said: Sequence[Exchange], answered: str) -> bool:
    """A fault was reported by the person, and found or repaired in the answers."""
    reported = cues.ERROR.search(said[0].asked) or (
        len(said) > 1 and cues.ERROR.search(said[1].asked)
    )
    if not reported:
        return False
    found = cues.CAUSE.search(answered) is not None
    repaired = cues.FIX.search(answered) is not None
    return (found and repaired) or ((found or repaired) and len(exchanges) > 1)


def _is_trivial(said: Sequence[Exchange]) -> bool:
    """Nothing but talk, or one short question with a short answer that names nothing."""
    if all(cues.CHATS.match(one.asked) and words.cost(one.asked) <= 12 for one in said):
        return True
    if len(said) > 1:
        return False
    one = said[0]
    if facts.tokens(one.answered) and words.cost(one.answered) > 12:
        return False
    short = words.cost(one.asked) <= 14 and words.cost(one.answered) <= 25
    return short and not facts.is_marked(one.asked)
