"""Clocks: virtual time on SimPy and real time on asyncio, behind one protocol."""
