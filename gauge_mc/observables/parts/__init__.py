"""Parts of observables: what they consist of beside what they measure."""
