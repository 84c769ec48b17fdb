"""A campaign: shards of libFuzzer under a supervisor, their corpora merged, and what they found."""
