"""Much at once: what it will cost before it is asked, and parcels that are answered within a day.

A parcel costs half. Its batches are marked as sent, so that nobody asks for them again; the worker
fetches the answers when they are ready. An answer whose messages have changed or were forgotten
meanwhile finds no batch any more, and is thrown away.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypatia_mem.errors import UsageError
from hypatia_mem.memory.cascade import failing
from hypatia_mem.memory.cascade.plan import URGENT, Batch, Planner, plan
from hypatia_mem.memory.cascade.running import SAMPLE, Report, present_of
from hypatia_mem.memory.cascade.storing import Done, store_made
from hypatia_mem.memory.spend import BATCH_SHARE, Meter, price_of
from hypatia_mem.memory.summarise import choosing, making, words
from hypatia_mem.memory.summarise.messages_api import MessagesApi
from hypatia_mem.memory.summarise.prompted import MAX_TOKENS, Prompted, Question, Reply, Usage
from hypatia_mem.memory.summarise.prompts import Prompts
from hypatia_mem.memory.summarise.protocol import FailureKind, Request, SummaryFailed
from hypatia_mem.model import Author
from hypatia_mem.store.jobs import Job, JobState

if TYPE_CHECKING:
    from hypatia_mem.config import Settings
    from hypatia_mem.store.connection import Store
    from hypatia_mem.store.jobs import Call

__all__ = ["Estimate", "Sent", "collect", "estimate", "recall", "send"]

_LOG = logging.getLogger("hypatia_mem")
_ANSWER_HOURS = 26  # a parcel that has no answer by then never will
_WORD_TOKENS = 1.4
_REASONING = 600  # tokens that an answer may take beside its words
_QUESTION = 500  # tokens of the rules and the tags around the items
_LARGEST_PARCEL = 500


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would ask a model: ``micro`` is likely, ``most_micro`` is never passed.

    Money in millionths of a dollar; nothing of either where no model is asked.
    """

    by: str
    model: str
    summaries: int
    calls: int
    input_tokens: int
    output_tokens: int
    micro: int
    most_micro: int
    left_calls: int
    left_micro: int

    @property
    def fits(self) -> bool:
        """Tell whether all of it is likely to be done today."""
        return self.calls <= self.left_calls and self.micro <= self.left_micro


@dataclass(frozen=True, slots=True)
class Sent:
    """A parcel that was handed in."""

    parcel: str
    batches: int
    questions: int
    most_micro: int


def estimate(
    home: Path,
    settings: Settings,
    *,
    now: datetime,
    scopes: Sequence[str] | None,
    parcel: bool = False,
) -> Estimate:
    """Estimate what condensing all that is due takes; asks nobody. ``parcel``: at half the price.

    Raises ConfigError when a price cannot be read.
    """
    from hypatia_mem.memory.spend import spending
    from hypatia_mem.store.connection import open_store

    planned = plan(home, settings, now=now, scopes=scopes)
    summaries = sum(one.summaries for one in planned)
    if settings.summary_by not in choosing.MODELS:
        return Estimate(settings.summary_by, "", summaries, 0, 0, 0, 0, 0, 0, 0)
    with open_store(home, write=False) as store:
        planner = Planner(store, home, settings, now)
        sizes = [one.tokens for one in planner.of_every_level(scopes) if one.level == 1]
    above = sum(one.items for one in planned if one.level > 1)
    words_in = int(settings.summary_words * _WORD_TOKENS)
    calls = sum(-(-size // planner.window) for size in sizes)
    calls += sum(one.summaries for one in planned if one.level > 1)
    read = sum(sizes) + above * words_in + calls * _QUESTION
    written = calls * (words_in + _REASONING)
    model = choosing.model_of(settings)
    price = price_of(home, model)
    share = BATCH_SHARE if parcel else 1.0
    into, out = price.of(read // max(1, calls))
    today = spending(home, settings, now)["today"]
    return Estimate(
        settings.summary_by,
        model,
        summaries,
        calls,
        read,
        written,
        int((read * into + written * out) * share),
        int((read * 1.15 * into + calls * MAX_TOKENS * out) * share),
        max(0, settings.model_day_calls - int(today["calls"])),
        max(0, settings.model_day_cents * 10_000 - round(today["dollars"] * 1e6)),
    )


# --- sending --------------------------------------------------------------------------------------


def send(
    home: Path,
    settings: Settings,
    *,
    now: datetime,
    author: Author,
    scopes: Sequence[str] | None,
) -> Sent | None:
    """Hand in the due batches of the lowest level, as many as the day's caps allow; None: none due.

    Raises UsageError when the summariser in force takes no parcels, SummaryFailed when it could not
    be reached or a cap leaves no room.
    """
    from hypatia_mem.store import jobs
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        planner = Planner(store, home, settings, now)
        due = [
            one
            for one in planner.due(scopes)
            if one.reason not in URGENT and not planner.stands_in(one)
        ]
        roots = [root.path for root in store.roots()]
        asked = _requests(store, settings, due)
    api, meter, one = _tools(home, settings, roots, author, now)
    if not due:
        return None
    questions, chosen, most = _under_the_caps(home, settings, one, meter, asked, now)
    call = meter.reserve(most, calls=len(questions), share=BATCH_SHARE)
    try:
        parcel = api.send(questions)
    except SummaryFailed as error:
        if error.failure is not FailureKind.TIMEOUT:
            meter.settle(replace(call, state="failed"), Usage())
        raise
    with open_store(home, write=True) as store, store.transaction(author, now=now) as txn:
        for batch in chosen:
            jobs.put_job(
                txn,
                Job(
                    batch.ticket, failing.kind_of(settings), batch.level, batch.scopes,
                    JobState.SENT, 0, now + timedelta(hours=_ANSWER_HOURS), "sent",
                    "handed in; answered within a day", f"{parcel} {call.id}",
                ),
            )  # fmt: skip
    return Sent(parcel, len(chosen), len(questions), call.micro)


def _tools(
    home: Path, settings: Settings, roots: Sequence[str], author: Author, now: datetime
) -> tuple[MessagesApi, Meter, Prompted]:
    import os

    if settings.summary_by != "anthropic":
        raise UsageError(
            f"summaries are made by {settings.summary_by}, which takes no parcels",
            hint="Parcels need the Messages API: hypatia-mem config set summary_by anthropic",
        )
    api = choosing.backend_of(home, settings, roots, os.environ)
    assert isinstance(api, MessagesApi)
    meter = Meter(home, settings, api, clock=lambda: now, author=author)
    window = choosing.window_of(home, settings, meter)
    return api, meter, Prompted(api, Prompts.of(home), window, api.ask)


def _requests(
    store: Store, settings: Settings, due: Sequence[Batch]
) -> list[tuple[Batch, Request]]:
    from hypatia_mem.store import graves, summaries

    known = graves.load(store)
    idf = words.idf_of(summaries.sample(store, SAMPLE)) if due else {}
    entries = summaries.contents(store, [item.name for one in due for item in one.items])
    return [
        (
            one,
            making.request_of(
                present_of(one, entries, known),
                one.level,
                settings.summary_words,
                idf,
                skip_user=settings.summary_skip_user,
            ),
        )
        for one in due
    ]


def _under_the_caps(
    home: Path,
    settings: Settings,
    one: Prompted,
    meter: Meter,
    asked: Sequence[tuple[Batch, Request]],
    now: datetime,
) -> tuple[dict[str, Question], list[Batch], Usage]:
    """Return as many questions as today's caps leave room for, at least one batch's."""
    from hypatia_mem.memory.spend import spending

    today = spending(home, settings, now)["today"]
    room = most_room = settings.model_day_cents * 10_000 - round(today["dollars"] * 1e6)
    left = min(_LARGEST_PARCEL, settings.model_day_calls - int(today["calls"]))
    questions: dict[str, Question] = {}
    chosen: list[Batch] = []
    read = written = 0
    for batch, request in asked:
        parts = one.questions(request)
        # Counted from where the estimates so far, were they half of the truth, reach the cap.
        near = int((2 * room - most_room) / BATCH_SHARE)
        most = [meter.estimate(part, near) for part in parts]
        more = Usage(
            read + sum(usage.input_tokens for usage in most),
            written + sum(usage.output_tokens for usage in most),
        )
        # Priced as single calls: a parcel's prompts are short even when their sum is not.
        dear = sum(meter.price.micro(usage, BATCH_SHARE) for usage in most)
        if chosen and (len(questions) + len(parts) > left or dear > room):
            break
        room -= dear
        read, written = more.input_tokens, more.output_tokens
        chosen.append(batch)
        for number, part in enumerate(parts):
            questions[_id(batch.ticket, number, len(parts))] = part
    return questions, chosen, Usage(read, written, dollars=(most_room - room) / 1e6)


def _id(ticket: str, number: int, count: int) -> str:
    return f"{ticket.replace('.', '-')}_{number}_{count}"


# --- fetching -------------------------------------------------------------------------------------


def collect(home: Path, settings: Settings, *, now: datetime, author: Author) -> Report:
    """Fetch what is ready of the parcels that were sent, and store it; asks for nothing new.

    Raises SummaryFailed when the other side cannot be asked.
    """
    from hypatia_mem.store import jobs
    from hypatia_mem.store.connection import open_store

    if settings.summary_by != "anthropic":
        return Report()
    with open_store(home, write=False) as store:
        out = [job for job in jobs.jobs(store).values() if job.parcel]
        roots = [root.path for root in store.roots()] if out else []
    if not out:
        return Report()
    api, meter, one = _tools(home, settings, roots, author, now)
    made: list[Done] = []
    failed: list[str] = []
    for parcel in sorted({job.parcel for job in out}):
        own = [job for job in out if job.parcel == parcel]
        sent = [job for job in own if job.state is JobState.SENT]
        answers = api.fetch(parcel.partition(" ")[0])
        if answers is None:
            if sent and all(job.next_at is not None and now > job.next_at for job in sent):
                _give_up(home, sent, author, now)
            continue
        _settle(home, meter, parcel.partition(" ")[2], answers, own, now)
        _let_go(home, [job for job in own if job not in sent], author, now)
        if sent:
            got, lost = _take(home, settings, one, _by_ticket(answers), sent, author, now)
            made += got
            failed += lost
    return Report(tuple(made), tuple(failed))


def recall(home: Path, settings: Settings, parcels: Sequence[str]) -> None:
    """Ask the API not to work on these parcels any more, as jobs name them. Raises SummaryFailed.

    What was answered by then is billed; ``collect`` writes down how much that was.
    """
    import os

    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        roots = [root.path for root in store.roots()]
    asked = replace(settings, summary_by="anthropic")  # who it was handed in to, whoever it is now
    api = choosing.backend_of(home, asked, roots, os.environ)
    assert isinstance(api, MessagesApi)
    for parcel in parcels:
        api.recall(parcel.partition(" ")[0])


def _by_ticket(
    answers: Mapping[str, Reply | SummaryFailed],
) -> dict[str, list[Reply | SummaryFailed]]:
    """Return the answers of each batch in order; what lacks one is not there."""
    found: dict[str, dict[int, Reply | SummaryFailed]] = {}
    counts: dict[str, int] = {}
    for key, answer in answers.items():
        ticket, number, count = key.rsplit("_", 2)
        ticket = ticket.replace("-", ".")
        found.setdefault(ticket, {})[int(number)] = answer
        counts[ticket] = int(count)
    return {
        ticket: [parts[n] for n in range(counts[ticket])]
        for ticket, parts in found.items()
        if set(parts) == set(range(counts[ticket]))
    }


def _take(
    home: Path,
    settings: Settings,
    one: Prompted,
    answers: Mapping[str, list[Reply | SummaryFailed]],
    own: Sequence[Job],
    author: Author,
    now: datetime,
) -> tuple[list[Done], list[str]]:
    from hypatia_mem.store import jobs
    from hypatia_mem.store.connection import open_store

    with open_store(home, write=False) as store:
        planner = Planner(store, home, settings, now)
        wanted = {job.id for job in own}
        asked = _requests(
            store, settings, [b for b in planner.of_every_level(None) if b.ticket in wanted]
        )
    ready = [
        (batch, _made(one, settings, batch, request, answers.get(batch.ticket)))
        for batch, request in asked
    ]
    made: list[Done] = []
    failed: list[str] = []
    with open_store(home, write=True) as store:
        # Whatever finds no batch any more is done with: its messages have changed or are gone.
        with store.transaction(author, now=now) as txn:
            jobs.delete_jobs(txn, wanted)
        for batch, result in ready:
            producer = f"{one.producer}#{one.digest}"
            if isinstance(result, SummaryFailed):
                failed.append(result.message)
                with store.transaction(author, now=now) as txn:
                    failing.note_failure(txn, batch, result, settings, now, pausing=False)
                continue
            done = store_made(store, batch, result, replace(author, producer=producer), now)
            if done is not None:
                made.append(done)
    return made, failed


def _made(
    one: Prompted,
    settings: Settings,
    batch: Batch,
    request: Request,
    answers: Sequence[Reply | SummaryFailed] | None,
) -> making.Made | SummaryFailed:
    if answers is None:
        return SummaryFailed(FailureKind.UNAVAILABLE, "the parcel came back without this answer")
    digests = {item.name: item.digest for item in batch.items}
    try:
        replies: list[Reply] = []
        for answer in answers:
            if isinstance(answer, SummaryFailed):
                return answer
            replies.append(answer)
        draft = one.draft(request, replies)
        name = " ".join(draft.topics)
        return making.finish(draft.sentences, request, digests, name, settings.summary_floor)
    except SummaryFailed as error:
        return error


def _settle(
    home: Path,
    meter: Meter,
    call_id: str,
    answers: Mapping[str, Any],
    own: Sequence[Job],
    now: datetime,
) -> None:
    """Write down what the parcel took instead of what it could have taken."""
    from hypatia_mem.store import jobs
    from hypatia_mem.store.connection import open_store

    since = min((job.created_at for job in own if job.created_at), default=now)
    with open_store(home, write=False) as store:
        calls: list[Call] = jobs.calls_since(store, since - timedelta(days=2))
    call = next((one for one in calls if one.id == call_id), None)
    if call is None or call.state != "open":
        return
    used = [answer.usage for answer in answers.values() if isinstance(answer, Reply)]
    micro = sum(meter.price.micro(usage, BATCH_SHARE) for usage in used)
    total = Usage(
        sum(one.input_tokens + one.cache_read + one.cache_write for one in used),
        sum(one.output_tokens for one in used),
        dollars=micro / 1e6,
    )
    meter.settle(replace(call, state="done"), total)


def _let_go(home: Path, dropped: Sequence[Job], author: Author, now: datetime) -> None:
    """Forget which parcel work was handed in with that a person has dropped since."""
    from hypatia_mem.store import jobs
    from hypatia_mem.store.connection import open_store

    if not dropped:
        return
    with open_store(home, write=True) as store, store.transaction(author, now=now) as txn:
        for job in dropped:
            jobs.put_job(txn, replace(job, parcel=""))


def _give_up(home: Path, own: Sequence[Job], author: Author, now: datetime) -> None:
    from hypatia_mem.store import jobs
    from hypatia_mem.store.connection import open_store

    _LOG.warning("a parcel of %d batches was never answered; they are due again", len(own))
    with open_store(home, write=True) as store, store.transaction(author, now=now) as txn:
        jobs.delete_jobs(txn, [job.id for job in own])
