"""What a new work unit is to one that is kept: each of the five relations, by what differs."""

from __future__ import annotations

import pytest

from hypatia_mem.memory.extract.comparing import compare

FIX = "session.py now uses session.get() and raises AuthExpired"
KEPT = f"""## Context
- user: the login test fails with KeyError in src/auth/session.py
## Solution
- assistant: {FIX}
"""
MORE = """## Key Detail
- assistant: the cookie expires after 30 minutes because nginx strips the Max-Age header on redirects;
"""


@pytest.mark.parametrize(
    ("content", "relation"),
    [
        (KEPT, "duplicate"),
        (KEPT + MORE + "the gateway config deploy/nginx.conf sets proxy_cookie_flags\n", "extends"),
        (KEPT.replace(FIX, "it now calls refresh_token() with retry_login()"), "supersedes"),
        (
            KEPT.replace(FIX, "session.py never uses session.get() and raises no AuthExpired"),
            "contradicts",
        ),
        ("## Context\n- user: which colour shall the buttons have\n## Decision\n- teal\n", "new"),
    ],
    ids=lambda value: value if len(value) < 20 else "",
)
def test_each_relation_is_told_by_what_differs(content, relation):
    found = compare(content, [("wu-far", "## Decision\n- we use kafka\n"), ("wu-old", KEPT)], {})
    assert found.relation == relation
    assert found.name == ("" if relation == "new" else "wu-old")
