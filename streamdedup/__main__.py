"""Lets `python -m streamdedup` do what the `streamdedup` command does."""

from streamdedup.cli import main

if __name__ == "__main__":
    main()
