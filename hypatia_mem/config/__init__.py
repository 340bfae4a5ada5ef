"""Settings: defaults, then ``config.toml``, then ``HYPATIA_MEM_<KEY>`` in the environment.

Reading never fails over what a file says: a value that cannot be used counts as its default and is
listed as a problem, because the worker must drain turns whatever somebody typed. Writing is strict
and touches one line: comments and keys of other versions stay.

The hook cannot afford TOML. It reads ``hook.conf``, a few ``key=value`` lines rendered from the
settings by ``write_hook_conf`` whenever they change; the environment does not enter it.

What costs money, or says where a person's words and key are sent, counts only from ``config.toml``:
an environment can be set by whatever project a session happens to run in.
"""

from __future__ import annotations

from hypatia_mem.config.changing import set_value, unset_value
from hypatia_mem.config.file import read_table, write_table
from hypatia_mem.config.hookconf import write_hook_conf
from hypatia_mem.config.reading import Loaded, load_settings, read_settings
from hypatia_mem.config.table import SETTINGS, Setting, Settings, lookup

__all__ = [
    "SETTINGS",
    "Loaded",
    "Setting",
    "Settings",
    "load_settings",
    "lookup",
    "read_settings",
    "read_table",
    "set_value",
    "unset_value",
    "write_hook_conf",
    "write_table",
]
