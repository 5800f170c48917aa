"""Servers: what answers questions, such as an expert, behind HTTP, MQTT or pipes."""
