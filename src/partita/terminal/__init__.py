"""What a terminal shows of a knowledge base's answers: for the command line and the demonstration alike.

``text`` writes numbers, lists and events as people do, and lets nothing through that a terminal would obey;
``drawing`` has tables of entities, events and questions; ``waterfall`` explanations.
"""
