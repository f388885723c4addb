"""Write sets for `rmem eval recall` from XQuAD (CC BY-SA 4.0) and JSQuAD (CC BY-SA 4.0): a question, and the paragraph
that answers it among all of them. For evaluation, never for training.

    python training/multilingual.py FOLDER OUT

FOLDER holds git directories, as for `corpus.py`.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

XQUAD = ("deepmind+xquad", "60cac411649156efb6aab9dd4c9cde787a2c0345", "xquad.{}.json")
JSQUAD = ("yahoojapan+JGLUE", "6f071c09316baae89c3d083a90985b4b1cb9968c", "datasets/jsquad-v1.3/valid-v1.3.json")


def main() -> None:
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    for language in ("en", "zh", "de", "ru", "ar", "ja"):
        repository, commit, name = JSQUAD if language == "ja" else XQUAD
        command = ["git", f"--git-dir={folder / repository / 'repo'}", "show", f"{commit}:{name.format(language)}"]
        given = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        memories, questions = [], []
        for article in given["data"]:
            for paragraph in article["paragraphs"]:
                for one in paragraph["qas"]:
                    questions.append({"question": one["question"], "relevant": [len(memories)]})
                memories.append({"text": paragraph["context"].replace(" [SEP] ", ": ")})
        made = {
            "name": f"squad-{language}",
            "unit": "memory",
            "stores": [{"memories": memories, "questions": questions}],
        }
        with gzip.GzipFile(out / f"squad-{language}.json.gz", "wb", mtime=0) as file:
            file.write(json.dumps(made, ensure_ascii=False).encode())
        print(language, len(memories), len(questions))


if __name__ == "__main__":
    main()
