"""What the figures of ``bench beam_context`` take for carried."""

from bench.beam_context.judging import needed

INSTRUCTION = {
    "category": "instruction_following",
    "question": "Which libraries do we use?",
    "instruction_being_tested": "Always include version numbers when I ask about libraries.",
}
VALUE = {
    "category": "knowledge_update",
    "question": "How many tea cups are in my kitchen?",
    "rubric": ["LLM response should state: 14 cups"],
}


def test_an_instruction_stands_where_one_sentence_has_most_of_its_words() -> None:
    want = needed(INSTRUCTION, ["Always include version numbers when I ask about libraries."])

    assert want is not None
    assert want.stands_in("Noted. Include version numbers, always, if asked about libraries!")
    assert not want.stands_in("Version numbers matter. The libraries are old. Always ask.")


def test_an_instruction_is_asked_for_no_clearer_than_its_own_turn_says_it() -> None:
    loose = needed(INSTRUCTION, ["Could you add version numbers of libraries?"])

    assert loose is not None
    assert loose.stands_in("wants version numbers of libraries")
    assert needed(INSTRUCTION, ["Something else."]) is None


def test_a_value_stands_where_its_number_is_beside_words_of_the_question() -> None:
    want = needed(VALUE, ["I bought two, so there are 14 tea cups now."])

    assert want is not None
    assert want.stands_in("The kitchen has 14 cups")
    assert not want.stands_in("The kitchen has 12 tea cups. It is the 14th of May.")
    assert not want.stands_in("14 days are left")
    assert needed(VALUE, ["I bought two more tea cups."]) is None
