"""Putting the hooks and the skill where the client finds them, renewing them, taking them out.

``actions`` plans and applies, ``findings`` tells what is installed and whether it is sound, and
``trial`` runs the installed hook in a scratch home. The rest are their parts:

- ``skilldir``: one directory that is skill and plugin at once; the default, touches no settings;
- ``settingsfile`` over ``settings``: hooks merged into a settings file, undone byte for byte;
- ``bundle``: what gets written; ``interpreter``: by which Python it is run;
- ``record``: what was installed where; ``command``: the second name; ``data``: removing a memory.

Promises: everything is planned before anything is written; nothing of somebody else's is
overwritten or removed; one way in replaces the other, so that no hook fires twice; a running
session's hooks work at every instant of a renewal and are silent after a removal.
"""

from __future__ import annotations

from hypatia_mem.install.actions import Report, install, uninstall, upgrade
from hypatia_mem.install.findings import Finding, installed_state
from hypatia_mem.install.trial import Demonstration, demonstrate, self_test

__all__ = [
    "Demonstration",
    "Finding",
    "Report",
    "demonstrate",
    "install",
    "installed_state",
    "self_test",
    "uninstall",
    "upgrade",
]
