"""What an operator sees of a running service: metrics, health, logs and a page over HTTP.

Everything hangs on the service's `Listener`; the service and the engine know nothing of it.
"""
