"""For the tests of orders of your own: one call that holds an order to all that plans rely on.

Examples
--------
>>> import indexplan as ip
>>> ip.testing.check_order(ip.Shuffle(100), fresh_process=False).ok
True
"""

from indexplan.testing.check import check_order

__all__ = ["check_order"]
