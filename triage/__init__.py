"""Triage: what was found, once for each bug, as small as it can be, until it is gone.

A finding is run again in a process that may hang, eat memory or die (`probe`), which gives it a
signature (`signature`) and thereby a bucket (`bucket`, `store`), wherever it was found. `minimise`
makes a bucket's input small, `known` says which buckets somebody has looked at, and until when.
"""
