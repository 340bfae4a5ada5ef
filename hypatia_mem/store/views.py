"""The views that ``hypatia-mem sql`` reads: stable names, documented columns, nothing withheld.

Their columns only ever grow. What is withheld (candidate, rejected, suppressed, expired) is in none
of them, nor are tombstones, keys and the store's own notes. Unless every project was asked for,
each view is narrowed to some scopes (I5), which come in a table of the reader's own memory: no text
of a caller is in any of this SQL (I7).
"""
# ruff: noqa: S608 - the statements are put together from this file's own words

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["SCOPES_TABLE", "VIEWS", "Column", "View"]

SCOPES_TABLE = "memory.main.hypatia_scopes"
_SCOPES = f"(SELECT scopes FROM {SCOPES_TABLE})"


class Column(NamedTuple):
    """One column: its name, its type, what it means, and how it is made."""

    name: str
    type: str
    meaning: str
    made: str


class View(NamedTuple):
    """One view: ``source`` and ``always`` give all its rows, ``within`` those of some scopes.

    ``note`` is told to whoever reads it with scopes, ``empty`` to whoever reads it at all.
    """

    name: str
    summary: str
    columns: tuple[Column, ...]
    source: str
    within: str
    always: str = ""
    note: str = ""
    empty: str = ""

    def create(self, *, every_scope: bool) -> str:
        """Return the statement that makes the view in the reader's own memory."""
        columns = ", ".join(f'{column.made} AS "{column.name}"' for column in self.columns)
        conditions = [self.always, "" if every_scope else self.within]
        where = " AND ".join(f"({one})" for one in conditions if one) or "true"
        return (
            f"CREATE VIEW memory.main.{self.name} AS"
            f" SELECT {columns} FROM {self.source} WHERE {where}"
        )


def _columns(prefix: str, text: str) -> tuple[Column, ...]:
    """Return columns from lines ``name | type | meaning [| SQL]``; the SQL defaults to the name."""
    found = []
    for line in text.strip().splitlines():
        name, type_, meaning, *made = (part.strip() for part in line.split("|", 3))
        found.append(Column(name, type_, meaning, made[0] if made else f'{prefix}."{name}"'))
    return tuple(found)


# A message is shown as long as its text is: what is forgotten takes its tool calls with it.
_SPOKEN = (
    "kb.main.message AS m JOIN kb.main.live_entry AS e ON e.session_id = m.session_id"
    " AND e.turn = m.turn AND e.kind = 'message'"
    " AND e.name = 'msg-' || m.session_id || '-' || m.turn"
)
_HEAD = "chr(10) || '## Content' || chr(10)"
_TEXT = (
    f"CASE WHEN contains(e.content, {_HEAD})"
    f" THEN substr(e.content, strpos(e.content, {_HEAD}) + 12) ELSE e.content END"
)
_ENTRY_IN_SCOPE = f"list_has_any(e.scopes, {_SCOPES})"
_PARTS = (
    """from_json(m.parts, '[{"type": "VARCHAR", "id": "VARCHAR", "name": "VARCHAR","""
    """ "input": "VARCHAR", "text": "VARCHAR", "length": "BIGINT", "is_error": "BOOLEAN","""
    """ "model": "VARCHAR", "input_tokens": "BIGINT", "output_tokens": "BIGINT","""
    """ "cache_read_tokens": "BIGINT", "cache_write_tokens": "BIGINT","""
    """ "cache_write_1h_tokens": "BIGINT"}]')"""
)


def _unnested(kind: str) -> str:
    """Return the source of one row for each part of a kind, ``parts`` being all of its message."""
    return (
        "(SELECT *, unnest(list_filter(parts, lambda part:"
        f" part.type = '{kind}')) AS part FROM (SELECT m.session_id, m.turn, e.scopes,"
        f""" m."at", m.parts AS raw, {_PARTS} AS parts FROM {_SPOKEN}) AS e"""
        f" WHERE contains(raw, '\"{kind}\"')) AS e"
    )


_OWN_SESSIONS = f"SELECT id FROM kb.main.session WHERE list_contains({_SCOPES}, project)"
_LIVE = "{0}.trust NOT IN ('candidate', 'rejected') AND {0}.expired_at IS NULL"

VIEWS: Mapping[str, View] = {
    view.name: view
    for view in (
        View(
            "knowledge",
            "Knowledge entries: rules, taboos, memories, summaries, and the texts of messages.",
            _columns(
                "e",
                """
                name | VARCHAR | the entry's name, unique
                content | VARCHAR | its text
                kind | VARCHAR | knowledge, rule, taboo, memory, summary, session or message
                tags | VARCHAR[] | its tags
                scopes | VARCHAR[] | the projects it belongs to; '' is the global scope
                synonyms | VARCHAR[] | other names of it
                figures | VARCHAR[] | archive:// links
                format | VARCHAR | how the text is written: markdown
                trust | VARCHAR | asserted, verified, disputed or stale
                pinned | BOOLEAN | kept in sight
                priority | INTEGER | the higher is told first where a prompt calls up several
                activation | JSON | which words call it up | TRY_CAST(e.activation AS JSON)
                valid_from | TIMESTAMP | since when it is true; NULL where nobody said
                valid_to | TIMESTAMP | until when it is true
                recorded_at | TIMESTAMP | when it was first stored
                session_id | VARCHAR | the session it came from, '' where it came from none
                turn | INTEGER | the turn of that session
                agent | VARCHAR | who stored it
                channel | VARCHAR | by which door: hook, transcript, cli-person, cli-agent, ...
                producer | VARCHAR | the program or model that wrote it
                version | INTEGER | 1, and one more for each change
                created_at | TIMESTAMP | when it was made; of a message, when it was said
                updated_at | TIMESTAMP | when it last changed
                """,
            ),
            "kb.main.live_entry AS e",
            _ENTRY_IN_SCOPE,
        ),
        View(
            "statements",
            "Statements: the triples of the graph.",
            _columns(
                "e",
                """
                triple | VARCHAR | the three parts as a line of CSV, unique
                subject | VARCHAR | what it is about
                predicate | VARCHAR | what is said of it
                object | VARCHAR | of what it is said
                content | VARCHAR | a note on it
                scopes | VARCHAR[] | the projects it belongs to; '' is the global scope
                synonyms | JSON | other names of its parts | e.synonyms::JSON
                trust | VARCHAR | asserted, verified, disputed or stale
                valid_from | TIMESTAMP | since when it is true
                valid_to | TIMESTAMP | until when it is true
                recorded_at | TIMESTAMP | when it was first stored
                session_id | VARCHAR | the session it came from
                turn | INTEGER | the turn of that session
                channel | VARCHAR | by which door it came in
                created_at | TIMESTAMP | when it was made
                """,
            ),
            "kb.main.live_statement AS e",
            _ENTRY_IN_SCOPE,
        ),
        View(
            "messages",
            "Messages: what was said, one row a speaker and turn.",
            _columns(
                "m",
                f"""
                session_id | VARCHAR | the session
                turn | INTEGER | its place in the session, from 1
                name | VARCHAR | the name of the entry that holds its text | e.name
                project | VARCHAR | the project's scope | e.scopes[1]
                role | VARCHAR | user or assistant
                text | VARCHAR | what was said | {_TEXT}
                said_at | TIMESTAMP | when it was said | m."at"
                tokens | INTEGER | output tokens of the answer; 0 for a prompt
                flags | VARCHAR[] | interrupted, queued, unanswered, ...
                parts | JSON | tool calls and results, reasoning, images, usage, in order | m.parts::JSON
                agent_id | VARCHAR | the subagent that spoke, '' for the main one
                uuid | VARCHAR | the transcript's line
                parent_uuid | VARCHAR | the line before it
                prompt_id | VARCHAR | the prompt it belongs to
                response_id | VARCHAR | the model's response
                """,  # noqa: E501 - a row of the table is a line
            ),
            _SPOKEN,
            _ENTRY_IN_SCOPE,
        ),
        View(
            "responses",
            "Responses of the model with their tokens; one message may hold several.",
            _columns(
                "e",
                """
                session_id | VARCHAR | the session
                turn | INTEGER | the message that holds the response
                project | VARCHAR | the project's scope | e.scopes[1]
                said_at | TIMESTAMP | when that message was said | e."at"
                model | VARCHAR | the model's id | e.part.model
                input_tokens | BIGINT | tokens read that no cache held | coalesce(e.part.input_tokens, 0)
                output_tokens | BIGINT | tokens written | coalesce(e.part.output_tokens, 0)
                cache_read_tokens | BIGINT | tokens read from the cache | coalesce(e.part.cache_read_tokens, 0)
                cache_write_tokens | BIGINT | tokens written to the cache, of either lifetime | coalesce(e.part.cache_write_tokens, 0)
                cache_write_1h_tokens | BIGINT | those of them that it keeps for an hour | coalesce(e.part.cache_write_1h_tokens, 0)
                """,  # noqa: E501 - a row of the table is a line
            ),
            _unnested("usage"),
            _ENTRY_IN_SCOPE,
        ),
        View(
            "tool_calls",
            "Calls of tools with their results.",
            _columns(
                "e",
                """
                session_id | VARCHAR | the session
                turn | INTEGER | the message that holds the call
                project | VARCHAR | the project's scope | e.scopes[1]
                said_at | TIMESTAMP | when that message was said | e."at"
                tool | VARCHAR | the tool's name | e.part.name
                input | VARCHAR | what it was called with, as JSON, cut at 2000 characters | e.part.input
                output | VARCHAR | its text, cut at 2000 characters; NULL where none came | e.result.text
                output_chars | BIGINT | how long the text was | e.result.length
                failed | BOOLEAN | whether it failed; NULL where no result came | e.result.is_error
                call_id | VARCHAR | the call's id | e.part.id
                """,  # noqa: E501 - a row of the table is a line
            ),
            "(SELECT *, list_filter(e.parts, lambda one: one.type = 'tool_result'"
            f" AND one.id = e.part.id)[1] AS result FROM {_unnested('tool_use')}) AS e",
            _ENTRY_IN_SCOPE,
        ),
        View(
            "sessions",
            "Sessions in which something was said.",
            _columns(
                "e",
                """
                id | VARCHAR | the session's id
                project | VARCHAR | the project's scope
                title | VARCHAR | its title, '' without one
                user_name | VARCHAR | the person | e."user"
                agent | VARCHAR | the agent
                client | VARCHAR | the program it ran in
                cwd | VARCHAR | the folder it began in
                git_branch | VARCHAR | the branch it was last on
                started_at | TIMESTAMP | when it began
                updated_at | TIMESTAMP | when something was last said or noted
                ended_at | TIMESTAMP | when it ended; NULL while it runs
                end_reason | VARCHAR | why it ended
                turns | INTEGER | how many messages it has, without those that a branch shares
                pinned | BOOLEAN | marked as worth keeping
                archived | BOOLEAN | left out of the list of sessions
                tags | VARCHAR[] | its tags
                forked_from | VARCHAR | the session it was forked from
                forked_at | INTEGER | the place of the last message that it shares with that one
                fork_reason | VARCHAR | what the branch is for
                headed_at | TIMESTAMP | when it was last made the head of its family; NULL for never
                """,
            ),
            "kb.main.session AS e",
            f"list_contains({_SCOPES}, e.project)",
            always="e.turns + e.forked_at > 0",
        ),
        View(
            "projects",
            "Projects and the folders known to be them.",
            _columns(
                "e",
                """
                scope | VARCHAR | the project's scope, as in the columns project and scopes
                aliases | VARCHAR[] | other names of it
                roots | VARCHAR[] | its folders | coalesce(r.paths, [])
                excluded | BOOLEAN | nothing of it is kept
                created_at | TIMESTAMP | when it was first seen
                """,
            ),
            "kb.main.project AS e LEFT JOIN (SELECT scope, list(path ORDER BY path) AS paths"
            " FROM kb.main.root GROUP BY scope) AS r ON r.scope = e.scope",
            f"list_contains({_SCOPES}, e.scope)",
        ),
        View(
            "versions",
            "Earlier states of the entries in knowledge. Of what is deleted there are none here.",
            _columns(
                "e",
                """
                name | VARCHAR | the entry
                version | INTEGER | the state's number
                content | VARCHAR | the text it had
                kind | VARCHAR | the kind it had
                tags | VARCHAR[] | the tags it had
                scopes | VARCHAR[] | the scopes it had
                trust | VARCHAR | how far it was believed
                updated_at | TIMESTAMP | when this state came to be
                replaced_at | TIMESTAMP | when the next one took its place
                op_id | VARCHAR | the operation that did it, as in ledger
                """,
            ),
            "kb.main.version AS e JOIN kb.main.live_entry AS now ON now.name = e.name",
            f"{_ENTRY_IN_SCOPE} AND list_has_any(now.scopes, {_SCOPES})",
            always=_LIVE.format("e") + " AND NOT e.suppressed",
        ),
        View(
            "ledger",
            "The ledger: every change and who made it. It holds no word of what was stored.",
            _columns(
                "e",
                """
                seq | BIGINT | its number, without gaps
                changed_at | TIMESTAMP | when | e."at"
                op_id | VARCHAR | the operation it was part of
                actor | VARCHAR | who
                channel | VARCHAR | by which door
                verb | VARCHAR | what and of what kind: create message, forget rule, ...
                target | VARCHAR | a message, session or project by name, all else as a keyed digest
                reason | VARCHAR | why, where somebody said
                before_digest | VARCHAR | keyed digest of the content before
                after_digest | VARCHAR | keyed digest of the content after
                prev_hash | VARCHAR | the hash of the row before
                hash | VARCHAR | the hash of this one, over the one before
                """,
            ),
            "kb.main.mutation AS e",
            f"e.target IN ({_OWN_SESSIONS})"
            f" OR regexp_extract(e.target, '^msg-(.*)-[0-9]+$', 1) IN ({_OWN_SESSIONS})"
            " OR (e.verb SIMILAR TO '.* (project|root)'"
            f" AND list_contains({_SCOPES}, e.target))",
            note="In ledger, entries and statements stand under a digest that tells no project:"
            " only --all-projects shows those rows.",
        ),
        View(
            "selections",
            "What was shown to which turn, and what was left out. Empty: nothing records it yet.",
            _columns(
                "e",
                """
                session_id | VARCHAR | the session | NULL::VARCHAR
                turn | INTEGER | the turn it was shown to | NULL::INTEGER
                item | VARCHAR | the entry | NULL::VARCHAR
                band | VARCHAR | which part of the block it stood in | NULL::VARCHAR
                rank | INTEGER | its place | NULL::INTEGER
                score | DOUBLE | how well it fitted | NULL::DOUBLE
                tokens | INTEGER | how many it took | NULL::INTEGER
                omitted | VARCHAR | why it was left out; NULL where it was shown | NULL::VARCHAR
                """,
            ),
            "(SELECT 1) AS e",
            "false",
            always="false",
            empty="selections is empty: what is shown to a turn is not recorded yet.",
        ),
    )
}
