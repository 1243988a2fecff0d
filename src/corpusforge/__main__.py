"""`python -m corpusforge`: the same as the command `corpusforge`."""

import sys

from corpusforge.cli import main

sys.exit(main())
