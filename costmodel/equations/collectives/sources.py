"""What several files of collectives cite: papers, how a form was checked, and why one is not exact."""

THAKUR = "Thakur, Rabenseifner, Gropp 2005, Optimization of Collective Communication Operations in MPICH, section 4"
RABENSEIFNER = "Rabenseifner 2004, Optimization of Collective Reduction Operations, section 4"
BRUCK = "Bruck, Ho, Kipnis, Upfal, Weathersby 1997, Efficient algorithms for all-to-all communications"
HENSGEN = "Hensgen, Finkel, Manber 1988, Two algorithms for barrier synchronization"
SHARP = "Graham et al. 2016, Scalable Hierarchical Aggregation Protocol (SHArP)"
NCCL = "NCCL 2.30, src/graph/tuning.cc"
BOOK_LINKS = "How To Scale Your Model, chapter 2"
BOOK_SHARDING = "How To Scale Your Model, chapter 3"
BOOK_GPUS = "How To Scale Your Model, chapter 12"

PORT_BY_PORT = "counted port by port; equals a step-by-step simulation"
LINK_BY_LINK = "counted link by link; equals a step-by-step simulation"
CABLE_BY_CABLE = "counted cable by cable, all groups of an axis at once"
CHOICE_BY_CHOICE = "chances of drawing without putting back; equals counting every choice"

LOWER_BOUND = "a lower bound; measurements lie between it and the levels in sequence"
SMALL_CHUNKS = "chunks are taken to be small"
