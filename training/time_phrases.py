"""Write rmem/timewords/phrases.tsv: how other languages say "yesterday", "three days ago", "last Monday" and "May".

    python training/time_phrases.py CLDR

CLDR is the folder `main` of the npm package cldr-dates-full 48.2.0 (Unicode License V3). Numbers in words are ours: the
package has none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LANGUAGES = "de fr es it pt nl sv pl ru uk tr ar hi ja zh ko".split()
NUMBERS = {
    "de": "ein|einem|einer zwei drei vier fünf sechs sieben acht neun zehn",
    "fr": "un|une deux trois quatre cinq six sept huit neuf dix",
    "es": "un|una dos tres cuatro cinco seis siete ocho nueve diez",
    "it": "un|una due tre quattro cinque sei sette otto nove dieci",
    "pt": "um|uma dois|duas três quatro cinco seis sete oito nove dez",
    "nl": "een|één twee drie vier vijf zes zeven acht negen tien",
    "sv": "en|ett två tre fyra fem sex sju åtta nio tio",
    "pl": "jeden|jedną dwa|dwie trzy cztery pięć sześć siedem osiem dziewięć dziesięć",
    "ru": "один|одну два|две три четыре пять шесть семь восемь девять десять",
    "uk": "один|одну два|дві три чотири п'ять шість сім вісім дев'ять десять",
    "tr": "bir iki üç dört beş altı yedi sekiz dokuz on",
    "ar": "واحد اثنين ثلاثة|ثلاث أربعة|أربع خمسة|خمس ستة|ست سبعة|سبع ثمانية|ثماني تسعة|تسع عشرة|عشر",
    "hi": "एक दो तीन चार पाँच|पांच छह|छः सात आठ नौ दस",
    "ja": "一 二 三 四 五 六 七 八 九 十",
    "zh": "一 二|两|兩 三 四 五 六 七 八 九 十",
    "ko": "한|일 두|이 세|삼 네|사 다섯|오 여섯|육 일곱|칠 여덟|팔 아홉|구 열|십",
}
_WEEKDAYS = "mon tue wed thu fri sat sun".split()


def phrases(fields: dict[str, Any], gregorian: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return what a phrase means, and the phrase; `{0}` in it is a number."""
    for unit in ("day", "week", "month", "quarter", "year"):
        for back in (0, 1, 2):
            if said := fields[unit].get(f"relative-type-{-back}" if back else "relative-type-0"):
                yield f"unit {unit} {back}", said
    for unit in ("minute", "hour", "day", "week", "month", "year"):
        for plural, said in fields[unit]["relativeTime-type-past"].items():
            number = {"one": "1", "two": "2"}.get(plural.rpartition("-")[2], "")
            yield f"ago {unit}{'' if '{0}' in said else f' {number}'}", said
    for number, name in enumerate(_WEEKDAYS):
        yield f"last {number}", fields[name]["relative-type--1"]
        for form in ("format", "stand-alone"):
            yield f"weekday {number}", gregorian["days"][form]["wide"][name]
    for form in ("format", "stand-alone"):
        for number, said in gregorian["months"][form]["wide"].items():
            yield f"month {number}", said


def main(cldr: Path) -> None:
    lines = []
    for language in LANGUAGES:
        dates = [
            json.loads((cldr / language / name).read_text("utf-8"))["main"][language]["dates"]
            for name in ("dateFields.json", "ca-gregorian.json")
        ]
        found = phrases(dates[0]["fields"], dates[1]["calendars"]["gregorian"])
        rows = {
            f"{language}\t{meaning}\t{' '.join(said.lower().replace('’', chr(39)).split())}" for meaning, said in found
        }
        rows |= {
            f"{language}\tnumber {number}\t{word}"
            for number, words in enumerate(NUMBERS[language].split(), 1)
            for word in words.split("|")
        }
        lines += sorted(rows)
    target = Path(__file__).parents[1] / "rmem" / "timewords" / "phrases.tsv"
    target.write_text("\n".join(lines) + "\n", "utf-8")
    print(f"{len(lines)} phrases of {len(LANGUAGES)} languages in {target.name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
