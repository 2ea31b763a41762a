"""The demonstration: the service at work on a made-up news feed, with a Kafka in the same process.

Reading order: `feed` (what comes in), `cluster` (the Kafka), `show` (the play), `tally` (what is
said at the end).  Nothing else in streamdedup knows of it.
"""
