"""Another system that is kept in step with a knowledge base, by nothing but the events that it prints."""

import json


class Follower:
    """Which fragment is of which entity, and what entities are called, as far as events tell."""

    def __init__(self):
        self.entity_of, self.names, self.seen = {}, {}, 0

    def catch_up(self, kb):
        """Take in what has happened since."""
        for event in kb.events(since=self.seen):
            self.follow(json.dumps(event.as_dict()))

    def follow(self, line):
        """One event, as ``partita events --json`` prints it."""
        event = json.loads(line)
        assert event["number"] == self.seen + 1, "an event is missing"
        self.seen = event["number"]
        for fragment in event["fragments"]:
            assert self.entity_of.get(fragment) == event["from"], "it is not where the event takes it from"
            if event["to"] is None:
                del self.entity_of[fragment]
            else:
                self.entity_of[fragment] = event["to"]
        if event["kind"] in ("created", "split"):
            self.names[event["to"]] = event["detail"].get("name")
        if event["kind"] == "renamed":
            self.names[event["entity"]] = event["detail"]["to"]

    def entities(self):
        """Of each entity its name, and its fragments."""
        held = {}
        for fragment, entity in self.entity_of.items():
            held.setdefault(entity, set()).add(fragment)
        return {entity: (self.names[entity], frozenset(fragments)) for entity, fragments in held.items()}


def entities_of(kb):
    """The same of a knowledge base."""
    return {entity.id: (entity.name, frozenset(entity.fragments)) for entity in kb.entities()}
