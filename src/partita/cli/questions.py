"""The command that asks humans: a list of questions, or a conversation in which they answer one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from partita.cli import arguments as args
from partita.cli.judging import events_of, judge, last_event, print_judgement
from partita.cli.opening import opened
from partita.cli.output import answered, console, note, print_json, print_json_lines, refusing

if TYPE_CHECKING:
    from partita.kb import KnowledgeBase
    from partita.kb.queries.questions import Question

ANSWERS = {"y": "confirm", "n": "separate", "u": "unsure"}
MATTERS = 0.005  # expected wrong pairs that an answer must remove for the question to be put to people
NOTHING = "There is nothing uncertain to ask."
AHEAD = 50  # questions that are counted to say how many there are


@refusing
def uncertain(
    kb: args.Base,
    limit: Annotated[int, typer.Option(min=1, help="How many questions at most.")] = 10,
    ask: Annotated[
        bool, typer.Option("--ask", help="Go through them: y(es), n(o), u(nsure), s(kip), b(ack), q(uit).")
    ] = False,
    user: args.User = None,
    json: args.Json = False,
) -> None:
    """List the questions that are worth asking a human, the most useful first.

    With --ask each answer is recorded at once, and the next question is the most useful one after it.
    """
    with opened(kb) as base:
        if ask:
            if Conversation(base, limit, user, json).hold():
                note(f"Answers teach: partita relearn {kb} learns from them.")
            return
        found = base.uncertain(limit)
        expected = base.wrong_pairs()
    if json:
        print_json_lines(question.as_dict() for question in found)
        return
    from partita.terminal import drawing

    out, worth = console(), [question for question in found if question.value >= MATTERS]
    for number, question in enumerate(worth, 1):
        drawing.question(out, number, question)
    if not worth:
        note(NOTHING)
        return
    note(f"About {expected:,.1f} wrong pairs are expected in all. Answer with partita uncertain {kb} --ask")


class Turn(NamedTuple):
    """A question that was asked, and the judgement that came of it; none if it was skipped."""

    question: Question
    judgement: int | None


class Conversation:
    """Question after question, each the most useful one at the time, and the answers recorded."""

    def __init__(self, base: KnowledgeBase, limit: int, user: str | None, json: bool) -> None:
        self.base, self.limit, self.user, self.json = base, limit, user, json
        self.turns: list[Turn] = []
        self.expected = base.wrong_pairs() if base.stats()["fragments"] else 0.0

    def hold(self) -> int:
        """Ask until nothing is left, the user has had enough or the limit is reached; how many were answered."""
        from partita.terminal import drawing

        out, first, back = console(error=self.json), self.expected, None
        while len(self.turns) < self.limit:
            left = self.questions()
            question = back or next(iter(left), None)
            if question is None:
                note(NOTHING)
                break
            self.announce(max(len(left), 1))
            drawing.question(out, len(self.turns) + 1, question)
            answer, back = prompt(), None
            if answer == "q":
                break
            if answer == "b":
                back = self.go_back() or question
            else:
                self.take(question, answer)
        n = sum(turn.judgement is not None for turn in self.turns)
        change = f"{first:,.2f} wrong pairs were expected, and {self.expected:,.2f} are now"
        note(f"{n} answered; {change}." if n else "Nothing answered.")
        return n

    def questions(self) -> list[Question]:
        """What is left to ask, but for what was asked already."""
        passed = [(turn.question.first, turn.question.second) for turn in self.turns]
        most = min(self.limit - len(self.turns), AHEAD)
        return [found for found in self.base.uncertain(most, passed=passed) if found.value >= MATTERS]

    def announce(self, left: int) -> None:
        """How far it has come."""
        done = len(self.turns)
        about = "about " if left + done < self.limit else "at most "
        note(f"Question {done + 1} of {about}{left + done}; {self.expected:,.2f} wrong pairs are expected.")

    def take(self, question: Question, answer: str) -> None:
        """Record an answer, and say what it has changed."""
        if answer == "s":
            self.turns.append(Turn(question, None))
            return
        try:
            report = judge(self.base, ANSWERS[answer], question.first, question.second, self.user)
        except ValueError as error:
            note(f"Error: {error}")
            self.turns.append(Turn(question, None))
            return
        self.turns.append(Turn(question, report["judgement"]))
        before, self.expected = self.expected, self.base.wrong_pairs()
        if self.json:
            events = [event.as_dict() for event in report["events"]]
            print_json({**report, "events": events, "wrong_pairs": self.expected})
            return
        print_judgement(report)
        typer.echo(f"  Wrong pairs that are expected: {before:,.2f} before, {self.expected:,.2f} now.\n")

    def go_back(self) -> Question | None:
        """Take the last answer back; the question it was given to, None if there is none."""
        if not self.turns:
            note("There is nothing to go back to.")
            return None
        question, judgement = self.turns.pop()
        if judgement is not None:
            before = last_event(self.base)
            self.base.undo(judgement, user=self.user)
            self.expected = self.base.wrong_pairs()
            if self.json:
                events = [event.as_dict() for event in events_of(self.base, judgement, before)]
                print_json({"undone": judgement, "events": events, "wrong_pairs": self.expected})
            else:
                typer.echo(f"Judgement {judgement} is undone.\n")
        return question


def prompt() -> str:
    """The answer: y, n, u, s, b or q; the end of the input is q."""
    while True:
        answer = answered("The same? y/n, u(nsure), s(kip), b(ack), q(uit):")
        if answer is None:
            return "q"
        if answer[:1] in (*ANSWERS, "s", "b", "q") and answer:
            return answer[0]
        note("Please answer y, n, u, s, b or q.")
