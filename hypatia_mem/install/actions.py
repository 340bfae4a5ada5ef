"""Install, upgrade, uninstall: plan everything, say it, then do it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypatia_mem
from hypatia_mem import config
from hypatia_mem.capture import paths
from hypatia_mem.errors import InstallError
from hypatia_mem.install import client, command, data, record, settingsfile, skilldir
from hypatia_mem.install.bundle import Target, hooks_block
from hypatia_mem.install.client import Place
from hypatia_mem.install.interpreter import hook_interpreter, site_directory, worker_path
from hypatia_mem.install.plan import Plan
from hypatia_mem.install.record import Record

__all__ = ["Report", "install", "installed_target", "uninstall", "upgrade"]


@dataclass(frozen=True, slots=True)
class Report:
    """What was done (or with ``dry_run`` would be), and remarks; both are sentences."""

    way: str
    directory: Path
    done: tuple[str, ...]
    remarks: tuple[str, ...]
    target: Target | None = None


def install(
    home: Path,
    *,
    settings: bool = False,
    project: Path | None = None,
    dry_run: bool = False,
    commands: Path | None = None,
) -> Report:
    """Install or renew the hooks and the skill; a second time changes nothing.

    ``settings`` asks for the settings file instead of the plugin directory; ``project`` for that
    working tree alone instead of every session. ``commands`` is the folder for the second name,
    None for none.

    Raises:
        InstallError: something stands in the way; nothing was changed.
    """
    where = client.place(project)
    plan, known = Plan(), record.load(home)
    plugin = client.enabled_plugin(where.config)
    if plugin and (settings or project):
        raise InstallError(
            f"the plugin {plugin} is switched on, and its hooks would fire beside these.",
            hint=f"Run `claude plugin disable {plugin}` first.",
        )
    _refuse_second_level(where)
    _plan_home(plan, home)
    way = "plugin" if plugin else _way(plan, settings)
    target = None
    if way == "plugin":
        plan.say(f"The hooks run from the plugin {plugin}; only the worker was set up.")
        _plan_removal(plan, known, where)
    else:
        target = Target(way, where.directory, hook_interpreter(), site_directory())
        _plan_other_levels_removal(plan, known, where)
        known.put(_plan_target(plan, target, where, known.find(where.config)))
    known.second_name = command.plan_second_name(plan, known, commands)
    plan.add("", lambda: record.save(home, known))
    plan.add("", lambda: record.note_away(home, away=False))
    _say_what_to_know(plan, where, home)
    return _finish(plan, way, where.directory, target, dry_run)


def upgrade(home: Path, *, dry_run: bool = False) -> Report:
    """Make every install known to this memory point at this version.

    Raises:
        InstallError: nothing is installed, or a place cannot be written.
    """
    known, plan = record.load(home), Plan()
    _adopt(known, client.place())
    if not known.installs:
        raise InstallError("nothing is installed yet.", hint="Run `hypatia-mem install`.")
    _plan_home(plan, home)
    target = None
    for old in list(known.installs):
        where = Place(old["level"], Path(old["config"]))
        if not where.config.is_dir():
            plan.say(f"{where.config} is gone; it was taken off the list.")
            known.drop(where.config)
            continue
        target = Target(old["way"], where.directory, hook_interpreter(), site_directory())
        known.put(_plan_target(plan, target, where, old))
    plan.add("", lambda: record.save(home, known))
    return _finish(plan, "", client.place().directory, target, dry_run)


def uninstall(
    home: Path,
    *,
    purge: bool = False,
    dry_run: bool = False,
    stop_worker: Callable[[Path], bool] = lambda _: True,
) -> Report:
    """Take out what was installed, and with ``purge`` the memory too.

    A home in which nothing was ever kept goes as well. ``stop_worker`` is called between the
    hooks, which could start one, and the data, which one could be writing; it says whether none
    runs afterwards.

    Raises:
        InstallError: a place cannot be written; the sentence says which.
    """
    known, plan = record.load(home), Plan()
    _adopt(known, client.place())
    for old in list(known.installs):
        _plan_removal(plan, known, Place(old["level"], Path(old["config"])))
    command.plan_second_name_removed(plan, known)
    known.second_name = ""
    stray = client.enabled_plugin(client.place().config)
    if stray:
        plan.say(f"The plugin {stray} is still on: `claude plugin uninstall {stray}`.")
    if home.is_dir():
        plan.add("", lambda: _stop(home, stop_worker))
        nothing_kept = not data.describe(home) and not (home / "config.toml").exists()
        if purge:
            data.plan_purge(plan, home)
        elif nothing_kept:
            plan.add("", lambda: data.purge(home))
        else:
            plan.add("", lambda: _leave_data(home, known))
            if not stray:
                plan.add("", lambda: record.note_away(home, away=True))
            plan.say(f"Kept the memory: {data.describe(home) or home}.")
    return _finish(plan, "", client.place().directory, None, dry_run)


def installed_target(home: Path) -> Target:
    """Return what is installed here and now, for running it; the nearest install wins.

    Raises:
        InstallError: nothing is installed.
    """
    known = record.load(home)
    _adopt(known, client.place())
    for old in reversed(known.installs):
        directory = Place(old["level"], Path(old["config"])).directory
        if skilldir.inspect(directory).kind == "ours":
            return Target(old["way"], directory, old["interpreter"], old["site"])
    raise InstallError("nothing is installed yet.", hint="Run `hypatia-mem install`.")


# ---- parts of a plan ----------------------------------------------------------------------------


def _way(plan: Plan, settings: bool) -> str:
    if settings:
        return "settings"
    version = client.client_version()
    if version is not None and version < client.FIRST_WITH_SKILL_PLUGINS:
        spelled = ".".join(map(str, version))
        plan.say(f"Claude Code {spelled} does not load hooks from a skill: settings are used.")
        return "settings"
    return "directory"


def _refuse_second_level(where: Place) -> None:
    if where.level == "user":
        return
    everywhere = client.place().directory
    if everywhere != where.directory and skilldir.inspect(everywhere).kind == "ours":
        raise InstallError(
            f"the hooks are installed for every project already ({everywhere}), and a second set "
            "would fire beside them.",
            hint="Run `hypatia-mem uninstall --keep-data` first to have them in one project only.",
        )


def _plan_home(plan: Plan, home: Path) -> None:
    done = "" if home.is_dir() else f"Made the memory's home {home}."

    def run() -> None:
        try:
            paths.ensure_home(str(home))
            config.write_hook_conf(
                home, config.load_settings(home), python=sys.executable, worker_path=worker_path()
            )
        except OSError as error:
            raise InstallError(
                f"cannot write {error.filename or home}: {error.strerror}.",
                hint="Fix its permissions, or set HYPATIA_MEM_HOME to a folder of yours.",
            ) from error

    plan.add(done, run)


def _plan_target(
    plan: Plan, target: Target, where: Place, old: dict[str, Any] | None
) -> dict[str, Any]:
    """Plan one way in and the end of the other; what to record about it."""
    memo = (old or {}).get("settings")
    if target.way == "settings":
        hooks = hooks_block(target)
        early = Plan()
        memo = settingsfile.plan_merge(early, where.settings, hooks, memo)
        skilldir.plan_write(plan, target)  # the launcher must be there before anything names it
        plan.acts += early.acts
    else:
        if memo or settingsfile.has_ours(where.settings):
            settingsfile.plan_unmerge(plan, where.settings, memo)
        memo = None
        skilldir.plan_write(plan, target)
    return {
        "level": where.level,
        "config": str(where.config),
        "way": target.way,
        "version": hypatia_mem.__version__,
        "interpreter": target.interpreter,
        "site": target.site,
        "settings": memo,
        "made_skills": bool((old or {}).get("made_skills", not where.directory.parent.exists())),
        "made_config": bool((old or {}).get("made_config", not where.config.exists())),
    }


def _plan_removal(plan: Plan, known: Record, where: Place) -> None:
    """Plan the removal of both ways in at one place: settings first, they name the launcher."""
    old = known.find(where.config) or {}
    memo = old.get("settings")
    if memo or settingsfile.has_ours(where.settings):
        try:
            settingsfile.plan_unmerge(plan, where.settings, memo)
        except InstallError as error:  # what is left there does nothing without the launcher
            plan.say(f"{error.message} {error.hint}")
    skilldir.plan_remove(plan, where.directory)

    def tidy() -> None:
        for made, folder in (
            (old.get("made_skills"), where.directory.parent),
            (old.get("made_config"), where.config),
        ):
            if made and folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
                folder.rmdir()

    plan.add("", tidy)
    known.drop(where.config)


def _plan_other_levels_removal(plan: Plan, known: Record, where: Place) -> None:
    """With the hooks in every session, those of single projects would fire a second time."""
    if where.level != "user":
        return
    for old in list(known.installs):
        if old["level"] == "project":
            _plan_removal(plan, known, Place("project", Path(old["config"])))


def _adopt(known: Record, where: Place) -> None:
    """Take an install into the record that is there without being in it (a lost or other home)."""
    if known.find(where.config) is not None:
        return
    found = skilldir.inspect(where.directory)
    in_settings = settingsfile.has_ours(where.settings)
    if found.kind == "ours" or in_settings:
        known.installs.insert(
            0,
            {
                "level": where.level,
                "config": str(where.config),
                "way": "settings" if in_settings else "directory",
                "version": found.version,
                "interpreter": hook_interpreter(),
                "site": site_directory(),
                "settings": None,
            },
        )


def _say_what_to_know(plan: Plan, where: Place, home: Path) -> None:
    if os.environ.get("HYPATIA_MEM_HOME"):
        plan.say(f"HYPATIA_MEM_HOME is set: the client must be started with it too ({home}).")
    if where.level == "project":
        plan.say(f"{where.directory} holds paths of this machine: do not commit it.")
    if client.hooks_are_off(where.config):
        plan.say('The settings say "disableAllHooks": no hook will run until that is changed.')


def _leave_data(home: Path, known: Record) -> None:
    """Keep the memory, but nothing by which a leftover hook would start our worker."""
    (home / "hook.conf").unlink(missing_ok=True)
    record.save(home, known)


def _stop(home: Path, stop_worker: Callable[[Path], bool]) -> None:
    if not stop_worker(home):
        raise InstallError(
            "the background worker does not stop; the hooks are gone, the data is untouched.",
            hint="Run `hypatia-mem worker stop`, then uninstall again.",
        )


def _finish(plan: Plan, way: str, directory: Path, target: Target | None, dry_run: bool) -> Report:
    if not dry_run:
        plan.apply()
    done = tuple(act.done for act in plan.acts if act.done)
    return Report(way, directory, done, tuple(plan.remarks), target)
