"""The service: articles from Kafka in, verdicts out, every article judged exactly once.

Reading order: `service` (who may work), `owner` (the loop), `commit` (the protocol), `changelog`
(the truth), `replica` (the index as a view of it).
"""
