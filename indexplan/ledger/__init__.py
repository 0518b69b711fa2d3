"""What a run has read: the ledger, and its end, from which all ranks compute the next lines."""

from indexplan.ledger.ledger import Ledger
from indexplan.ledger.tail import Tail, check_begins, resume_of
from indexplan.partition.steps import Resume

__all__ = ["Ledger", "Resume", "Tail", "check_begins", "resume_of"]
