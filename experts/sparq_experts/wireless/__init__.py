"""Wireless: radios, nodes and gateways of sensor networks, in SI units.

Times are in seconds, distances in metres, energies in joules, draws in watts, sizes in bytes,
powers in dBm and ratios in dB.
"""
