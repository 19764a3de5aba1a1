"""``python -m dualtap`` is the command ``dualtap``."""

from dualtap.cli import main

main()
