"""``python -m hypatia_mem`` is the same program as ``hypatia-mem``."""

from hypatia_mem.cli.app import main

if __name__ == "__main__":
    main()
