"""The gateway: every mutation there is (I4).

A ``Transaction`` asks the tombstones first, then changes the state, keeps the earlier state as a
version, notes the name for the search index and writes the ledger row: all in one DuckDB
transaction, so that a kill at any instant leaves all of it or none. Refused writes are ledger rows
too. Messages go in by the thousand with one statement a table: a row at a time costs a hundred
times as much.

Its parts: ``writing`` (ledger rows, how rows go in), ``tombstones``, ``versions``, ``entries``,
``erasing``, ``forgetting``, ``messages``, ``merging``, ``upkeep``, ``undoing``, ``trust``;
``authority`` says who may do what.
"""

from __future__ import annotations

from hypatia_mem.store.erasing import ErasingWrites
from hypatia_mem.store.forgetting import ForgettingWrites
from hypatia_mem.store.merging import MergeWrites
from hypatia_mem.store.trust import TrustWrites
from hypatia_mem.store.undoing import Undoing
from hypatia_mem.store.upkeep import UpkeepWrites

__all__ = ["Transaction"]


class Transaction(ErasingWrites, ForgettingWrites, MergeWrites, TrustWrites, Undoing, UpkeepWrites):
    """An open change. Made by ``Store.transaction`` only."""
