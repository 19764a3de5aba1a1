"""``python -m dualtap`` is the command ``dualtap``."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command; Ctrl-C while it is still being imported ends it quietly as well."""
    try:
        from dualtap.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
