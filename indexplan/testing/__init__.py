"""Test an order of your own: `check_order` checks everything that plans rely on.

Examples
--------
>>> import indexplan as ip
>>> ip.testing.check_order(ip.Shuffle(100), fresh_process=False).ok
True
"""

from indexplan.testing.check import check_order

__all__ = ["check_order"]
