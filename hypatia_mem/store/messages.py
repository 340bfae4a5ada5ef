"""Writing turns and sessions, by the thousand with one statement a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from hypatia_mem.errors import NotFound
from hypatia_mem.model import Entry, Message, Outcome, Session, Statement
from hypatia_mem.store import authority, rows, sources, standing, withdrawing
from hypatia_mem.store.entries import EntryWrites
from hypatia_mem.store.standing import Standing
from hypatia_mem.store.tombstones import canonical
from hypatia_mem.store.writing import CAPTURE, plain

__all__ = ["MessageWrites"]


class MessageWrites(EntryWrites):
    """The part of a transaction that changes messages, sessions and their summaries."""

    # A session, where the ledger ended, and how things stood there.
    _stood: tuple[str, tuple[int, str] | None, Standing] | None = None

    def put_messages(self, session_id: str, messages: Sequence[Message], scope: str) -> list[int]:
        """Store messages in this order under dense turn numbers; returns each one's turn.

        A message whose ``uuid`` is stored already, in whatever session, is left out (0): resumed
        and forked sessions repeat lines, and a record may be delivered twice.
        """
        session_id = rows.clean(session_id)
        messages = [_cleaned(message, session_id) for message in messages]
        known = self.store.known_uuids(message.uuid for message in messages)
        at = self._stand(session_id)
        turn = at.turn
        turns: list[int] = []
        fresh: list[tuple[Message, int]] = []
        seen: set[str] = set(known)
        for message in messages:
            if message.uuid in seen:
                turns.append(0)
                continue
            seen.add(message.uuid)
            turn += 1
            turns.append(turn)
            fresh.append((message, turn))
        if not fresh:
            return turns
        texts = {number: rows.message_entry(message, number, scope) for message, number in fresh}
        gone = self._forgotten_turns(texts, scope, at)
        said = [number for number in texts if number not in gone]
        entries = [rows.entry_row(texts[number], self.author, self.now) for number in said]
        names = [row["name"] for row in entries]
        again = self._next_versions(names) if at.is_any_taken_out else {}
        for row in entries:
            row["version"] = again.get(row["name"], 1)
            row["seq"] = self._note("create", row["name"], "message", after=row["content_digest"])
        self._bulk("entry", entries)
        lines = [_message_row(message, number) for message, number in fresh]
        for line in lines:  # that it was said stays known, so that its line is not read again
            if line["turn"] in gone:
                line.update(parts="[]", text_digest=self.sealed(line["text_digest"]))
        self._bulk("message", lines)
        self.store.execute(
            "UPDATE session SET turns = ?, updated_at = greatest(updated_at, ?) WHERE id = ?",
            [turn, max(message.at for message, _ in fresh), session_id],
        )
        if at.has_entry:
            self._belong(session_id, scope, said)
        return turns

    def _stand(self, session_id: str) -> Standing:
        """Return how things stand in a session; asked once, until the ledger says of a change."""
        known = self._stood
        if known is None or known[:2] != (session_id, self._end):
            at = standing.look(self.store, session_id, asks_end=self._end is None)
            self._end = self._end or at.end or self.store.ledger_end()
            self._stood = known = (session_id, self._end, at)
        return known[2]

    def _forgotten_turns(self, texts: Mapping[int, Entry], scope: str, at: Standing) -> set[int]:
        """Return the turns that are read again though they were forgotten.

        A turn is known by its role, its time and its words together: who says the same once more
        says something new.
        """
        if not self.store.may_hold("tombstone"):
            return set()
        said = {number: one.content for number, one in texts.items()}
        gone = self._refused_before(said, scope, at.graves)
        for number in sorted(gone):
            name = texts[number].name
            self._note("refuse", name, "message", reason="forgotten before", index=False)
        return gone

    def amend_message(self, session_id: str, turn: int, **changes: Any) -> Outcome:
        """Do what ``amend_messages`` does, for one. Raises NotFound."""
        return self.amend_messages(session_id, {turn: changes})[0]

    def amend_messages(
        self, session_id: str, amendments: Mapping[int, Mapping[str, Any]]
    ) -> list[Outcome]:
        """Bind messages to their transcript lines or let their texts grow, many at once.

        ``amendments`` holds fields of ``Message`` by turn; a changed text makes a new version of
        its entry; a line that is another message's already is refused. Outcomes come in the order
        of ``amendments``. Raises NotFound for a turn that is not there.
        """
        session_id = rows.clean(session_id)
        have = {one.turn: one for one in self.store.messages_at(session_id, list(amendments))}
        entries = {one.name: one for one in self.store.entries(_names(session_id, have))}
        wanted = [str(change["uuid"]) for change in amendments.values() if "uuid" in change]
        holders = self.store.known_uuids([rows.clean(uuid) for uuid in wanted])
        sealed = {one.turn: one.text_digest for one in self.store.known_messages(session_id)}
        hers = self._written_by_person(entries, amendments)
        outcomes: list[Outcome] = []
        lines: list[dict[str, Any]] = []
        texts: list[tuple[Entry, Entry]] = []
        rewritten: list[tuple[Message, dict[str, Any]]] = []
        for turn, changes in amendments.items():
            name = f"msg-{session_id}-{turn}"
            before = have.get(turn)
            if before is None:
                raise NotFound(f"message {turn} of session {session_id!r}")
            entry = entries.get(name)
            # Words that were deleted do not come back by this door, nor go over a person's.
            if entry is None or name in hers:
                changes = {key: changes[key] for key in changes if key not in ("text", "parts")}
            after = _cleaned(replace(before, **changes), session_id)
            if after == before:
                outcomes.append(Outcome("unchanged", name))
                continue
            if after.text != before.text and self._is_agent():
                outcomes.append(self._refuse(name, "message", authority.EVIDENCE))
                continue
            if holders.get(after.uuid, (session_id, turn)) != (session_id, turn):
                outcomes.append(Outcome("refused", name, reason="its line is stored"))
                continue
            holders.pop(before.uuid, None)
            holders[after.uuid] = (session_id, turn)
            lines.append(_message_row(after, turn))
            if entry is None:
                lines[-1].update(parts="[]", text_digest=sealed[turn])
            if entry is not None and (after.text, after.at) != (before.text, before.at):
                body = rows.message_entry(after, turn, "")
                texts.append((entry, replace(entry, content=body.content)))
                rewritten.append((before, lines[-1]))
            else:
                self._keep_amended(self._note("amend", name, "message"), before, lines[-1])
            outcomes.append(Outcome("updated", name))
        if lines:
            self.store.execute(
                "DELETE FROM message"
                " WHERE session_id = ? AND turn IN (SELECT unnest(?::INTEGER[]))",
                [session_id, [line["turn"] for line in lines]],
            )
            self._bulk("message", lines)
        seqs = self._write_texts(texts)
        for seq, (was, became) in zip(seqs, rewritten, strict=True):
            self._keep_amended(seq, was, became)
        return outcomes

    def _written_by_person(
        self, entries: Mapping[str, Entry], amendments: Mapping[int, Mapping[str, Any]]
    ) -> set[str]:
        """Return the messages that a person edited, when something automatic brings new words."""
        automatic = self.author.channel in authority.AUTOMATIC
        if not automatic or not any("text" in changes for changes in amendments.values()):
            return set()
        return authority.set_by_person(self.store, entries, "words")

    def _keep_amended(self, seq: int, before: Message, became: Mapping[str, Any]) -> None:
        if self.author.channel in CAPTURE:
            return
        was = _message_row(before, became["turn"])
        changed = [name for name in became if became[name] != was[name]]
        name = f"msg-{became['session_id']}-{became['turn']}"
        parts = ({field: row[field] for field in changed} for row in (was, became))
        self._keep_image(seq, "message", name, *parts)

    def put_session(self, session: Session) -> Outcome:
        """Store what is known of a session; empty fields leave what was known before.

        The start never moves, the end and the last change never go back.
        """
        session = self._without_erased_title(_cleaned_session(session))
        before = self.store.session(session.id)
        if before is None:
            at = self._stand(session.id)
            row = {f.name: getattr(session, f.name) for f in fields(Session)}
            self._insert_session(row, at.turn)
            seq = self._note("create", session.id, "session", index=False)
            self._keep_image(seq, "session", session.id, None, row)
            self._stood = session.id, self._end, at
            return Outcome("created", session.id)
        merged = _merged(before, session)
        if merged == before:
            return Outcome("unchanged", session.id)
        at = self._stand(session.id)
        self._update_session(before, merged)
        self._note_session(before, merged)
        self._stood = session.id, self._end, at  # nothing has changed that it tells
        return Outcome("updated", session.id)

    def _without_erased_title(self, session: Session) -> Session:
        """Leave out a title that was erased: a transcript that is read again still has it."""
        if not session.title or not self._any_buried():
            return session
        erased = self._buried(self._title_digests(session.title), [session.project])
        return replace(session, title="") if erased else session

    def _title_digests(self, title: str) -> list[str]:
        return self._tomb_digests(["title:" + canonical(title)])

    def edit_session(self, session_id: str, **changes: Any) -> Outcome:
        """Set fields of a session exactly as given; a title that was forgotten, only for a person.

        The outcome is ``updated``, ``unchanged`` or ``refused``. Raises NotFound.
        """
        before = self.store.session(session_id)
        if before is None:
            raise NotFound(f"session {session_id!r}")
        after = _cleaned_session(replace(before, **changes))
        if after == before:
            return Outcome("unchanged", session_id)
        if after.title != before.title and not self._is_person() and self._any_buried():
            said = [*self._title_digests(after.title), *self._value_digests(_titled(after))]
            if self._buried(said, [after.project]):
                self._note("refuse", session_id, "session", reason="forgotten before", index=False)
                return Outcome("refused", session_id, reason="this was forgotten before")
        self._update_session(
            before, replace(after, updated_at=max(self.now, before.updated_at or self.now))
        )
        self._note_session(before, after)
        return Outcome("updated", session_id)

    def _note_session(self, before: Session, after: Session) -> None:
        seq = self._note("update", before.id, "session", index=False)
        changed = _changed(before, after)
        parts = ({name: getattr(one, name) for name in changed} for one in (before, after))
        self._keep_image(seq, "session", before.id, *parts)

    def put_summary(self, session_id: str, text: str, source: str, scope: str) -> Outcome:
        """Store a session's real summary as ``session-<ID>`` and link all its messages to it.

        ``source`` says where it came from (``compaction``, ``title``); nothing is made up here.
        """
        name = f"session-{session_id}"
        if self._is_without_sources(session_id, name, text, source):
            self._note("refuse", name, "session", reason="source withdrawn", index=False)
            return Outcome("refused", name, reason="part of what it sums up was deleted")
        entry = Entry(
            name=name,
            content=text,
            tags=("session",),
            scopes=(scope,),
            kind="session",
            session_id=session_id,
        )
        with self.acting(replace(self.author, producer=source)):
            outcome = self.put_entry(entry, replace=True)
        if outcome.verb == "created":
            self._belong(session_id, scope, range(1, self._turns(session_id) + 1))
        return outcome

    def _is_without_sources(self, session_id: str, name: str, text: str, source: str) -> bool:
        """Tell whether a summary that the client made stands on messages that are not there.

        So does one that went with them, or was itself deleted, and is read again. What a person
        called the session is its own.
        """
        if source == sources.NAMED:
            return sources.was_withdrawn(self.store, name, text)
        withdrawn = sources.lacks_messages(self.store, session_id)
        return withdrawn or sources.was_withdrawn(self.store, name, text)

    def _write_texts(self, pairs: Sequence[tuple[Entry, Entry]]) -> list[int]:
        """Give many entries a new content, with one statement; the old ones become versions.

        Returns the ledger sequence number of each.
        """
        if not pairs:
            return []
        types = {
            "name": "VARCHAR", "content": "VARCHAR", "content_digest": "VARCHAR", "seq": "BIGINT",
        }  # fmt: skip
        values: list[dict[str, Any]] = []
        seqs: list[int] = []
        for before, after in pairs:
            old, new = rows.digest(before.content), rows.digest(after.content)
            seqs.append(self._note("update", before.name, before.kind, before=old, after=new))
            values.append(
                {
                    "name": before.name,
                    "content": after.content,
                    "content_digest": new,
                    "seq": seqs[-1],
                }
            )
        names = [before.name for before, _ in pairs]
        for name in {on for one in sources.derived(self.store, names) for on in one.on}:
            by_person = self._is_person()
            withdrawing.set_back(self, name, hidden=False, grows=not by_person, reworded=by_person)
        self._retire("entry", dict(zip(names, seqs, strict=True)))
        self.store.execute(
            """
            UPDATE entry SET content = v.content, content_digest = v.content_digest, seq = v.seq,
                producer = $1, version = version + 1, updated_at = $2
            FROM (SELECT unnest(from_json($3::JSON, $4), recursive := true)) AS v
            WHERE entry.name = v.name
            """,  # numbered: which `?` comes first here, DuckDB 1.5 and 2.0 see differently
            [self.author.producer, self.now, json.dumps(values), json.dumps([types])],
        )
        return seqs

    def _belong(self, session_id: str, scope: str, turns: Iterable[int]) -> None:
        """Link messages to their session's entry, which is there."""
        name = f"session-{session_id}"
        made = [
            rows.statement_row(
                Statement(f"msg-{session_id}-{turn}", "belongTo", name, scopes=(scope,)),
                self.author,
                self.now,
            )
            for turn in turns
        ]
        have = {
            str(row[0])
            for row in self.store.execute(
                "SELECT triple FROM statement WHERE predicate = 'belongTo' AND object = ?", [name]
            ).fetchall()
        }
        new = [row for row in made if row["triple"] not in have]
        for row in new:
            row["seq"] = self._note("create", row["triple"], "statement")
        self._bulk("statement", new)

    def _turns(self, session_id: str) -> int:
        found = self.store.execute(
            "SELECT coalesce(max(turn), 0) FROM message WHERE session_id = ?", [session_id]
        ).fetchone()
        return int(found[0]) if found else 0

    def _insert_session(self, row: dict[str, Any], turns: int) -> None:
        names = [f.name for f in fields(Session)]
        columns = ", ".join(f'"{name}"' for name in names)
        marks = ", ".join("?" for _ in names)
        values = [list(row[name]) if name == "tags" else row[name] for name in names]
        self.store.execute(
            f"INSERT INTO session ({columns}, turns) VALUES ({marks}, ?)",  # noqa: S608 - our names
            [*values, turns],
        )

    def _update_session(self, before: Session, session: Session) -> None:
        names = _changed(before, session)
        if not names:
            return
        sets = ", ".join(f'"{name}" = ?' for name in names)
        values: list[Any] = []
        for name in names:
            value = getattr(session, name)
            values.append(list(value) if name == "tags" else value)
        self.store.execute(
            f"UPDATE session SET {sets} WHERE id = ?",  # noqa: S608 - our own column names
            [*values, session.id],
        )


# ----------------------------------------------------------------------------------------------


def _names(session_id: str, turns: Iterable[int | None]) -> list[str]:
    return [f"msg-{session_id}-{turn}" for turn in turns]


def _changed(before: Session, after: Session) -> list[str]:
    names = [f.name for f in fields(Session)]
    return [name for name in names if getattr(before, name) != getattr(after, name)]


def _message_row(message: Message, turn: int) -> dict[str, Any]:
    return {
        "session_id": message.session_id,
        "turn": turn,
        "uuid": message.uuid,
        "parent_uuid": message.parent_uuid,
        "prompt_id": message.prompt_id,
        "response_id": message.response_id,
        "role": message.role,
        "agent_id": message.agent_id,
        "parts": rows.clean(json.dumps(list(message.parts), ensure_ascii=False, default=plain)),
        "tokens": message.tokens,
        "flags": list(message.flags),
        "text_digest": rows.digest(rows.clean(message.text)),
        "at": message.at,
    }


def _cleaned(message: Message, session_id: str) -> Message:
    """Return a message whose texts are storable, as one of ``session_id``."""
    said = "".join(
        (
            message.uuid,
            message.text,
            message.parent_uuid,
            message.prompt_id,
            message.response_id,
            message.agent_id,
            *message.flags,
        )
    )
    fits = message.session_id == session_id and 0 <= message.tokens < 2**31
    if fits and rows.clean(said) == said:  # hardly any does not: a copy costs more than to look
        return message
    return replace(
        message,
        session_id=session_id,
        uuid=rows.clean(message.uuid),
        text=rows.clean(message.text),
        parent_uuid=rows.clean(message.parent_uuid),
        prompt_id=rows.clean(message.prompt_id),
        response_id=rows.clean(message.response_id),
        agent_id=rows.clean(message.agent_id),
        flags=tuple(rows.clean(flag) for flag in message.flags),
        tokens=min(max(message.tokens, 0), 2**31 - 1),
    )


def _cleaned_session(session: Session) -> Session:
    changes: dict[str, Any] = {
        one.name: rows.clean(value)
        for one in fields(Session)
        if isinstance(value := getattr(session, one.name), str)
    }
    return replace(session, **changes, tags=tuple(rows.clean(tag) for tag in session.tags))


def _titled(session: Session) -> Entry:
    """Return a session's title as an entry would say it."""
    return Entry("", session.title, scopes=(session.project,))


def _merged(before: Session, new: Session) -> Session:
    changes: dict[str, Any] = {}
    for one in fields(Session):
        value = getattr(new, one.name)
        if value in ("", None, (), False) or one.name == "id":
            continue
        changes[one.name] = value
    if before.started_at is not None and new.started_at is not None:
        changes["started_at"] = min(before.started_at, new.started_at)
    for name in ("updated_at", "ended_at"):
        old, now = getattr(before, name), getattr(new, name)
        if old is not None and now is not None:
            changes[name] = max(old, now)
    return replace(before, **changes)
