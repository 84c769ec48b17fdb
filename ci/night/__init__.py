"""A night: everything that takes too long for a change's gate, one step after the other.

context.py   what the steps are given: where everything lies, what earlier nights came to
plan.py      the steps: what each is, its share of the minutes, how it is started
judge.py     what a step left, as findings, as what was not watched, and as figures
runner.py    the night from beginning to end, and an unfinished one taken up again
child.py     one step's process, within its time
state.py     night.json, and the lock that keeps two nights apart
history.py   history.jsonl, a row a night
corpus.py    the inputs that are kept between nights
slices.py    which part of the engine is mutated
weights.py   which harness gets how much of the fuzzing
patch.py     the new inputs as one patch
"""
