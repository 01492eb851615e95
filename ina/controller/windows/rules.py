"""Which window algorithm and which weight a job has: by its name, its tenant, or as all. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase

from ina.congestion import Congestion
from ina.controller.config import Config
from ina.controller.config.windows import JobRule
from ina.controller.job import Job


class Rules:
    """Of a checked configuration. A job's own rule comes first, then its tenant's, then all's."""

    def __init__(self, config: Config) -> None:
        self._all = Congestion.from_table(config.congestion)
        self._tenants = config.tenants
        self._rules = config.job_rules

    def congestion(self, job: Job) -> Congestion:
        """The algorithm of its workers, but for those that choose one themselves."""
        rule, tenant = self._rule(job), self._tenants.get(job.tenant)
        for of in (rule, tenant):
            if of is not None and of.congestion is not None:
                return Congestion.from_table(of.congestion)
        return self._all

    def weight(self, job: Job) -> float:
        """Of its share of what it uses together with others."""
        rule, tenant = self._rule(job), self._tenants.get(job.tenant)
        if rule is not None and rule.weight is not None:
            return rule.weight
        return 1.0 if tenant is None else tenant.weight

    def _rule(self, job: Job) -> JobRule | None:
        return next((it for it in self._rules if fnmatchcase(job.name, it.name)), None)
