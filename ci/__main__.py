"""`python -m ci` is `residue`, for a checkout that is not installed."""

import sys

from ci.command import main

sys.exit(main())
