"""Wireless: radios, nodes and gateways of sensor networks, in SI units."""
