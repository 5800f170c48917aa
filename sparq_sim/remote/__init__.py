"""Doors to real things: the wire format, and peers over HTTP, programs and MQTT."""
