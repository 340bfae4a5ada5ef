"""The launcher the client runs: it finds the package, and never fails whatever is missing.

A missing script makes Python exit with 2, which blocks a prompt; so this file is copied beside the
settings that name it, and ends silently when the package, or a Python new enough, is not there.
"""

PACKAGE = ""

try:
    import sys

    folder = PACKAGE or __file__.replace("\\", "/").rpartition("/hooks/")[0]
    if folder and sys.version_info >= (3, 11):
        # Appended, never put first: nothing beside the package can shadow the standard library.
        sys.path.append(folder)
        from hypatia_mem.capture import hook

        hook.main()
except BaseException:  # noqa: BLE001 - whatever it is, the person's prompt must pass
    pass
try:
    import posix

    posix._exit(0)
except ImportError:
    pass
