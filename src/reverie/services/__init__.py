"""Use cases: one public function per verb."""
