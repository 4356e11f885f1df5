"""Sentences sorted by a BERT of transformers with random weights: `classify.py [--batch N] [SENTENCES]`.

Without --batch the program hands one sentence after another to the pipeline, as a loop over a file does.
"""

import argparse
import random
import time

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast, pipeline

parser = argparse.ArgumentParser()
parser.add_argument("sentences", nargs="?", type=int, default=2048)
parser.add_argument("--batch", type=int)
given = parser.parse_args()

torch.manual_seed(1)
random.seed(1)
words = ["[PAD]", "[UNK]", *(f"word{number}" for number in range(5000))]
tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")
model = BertForSequenceClassification(BertConfig(vocab_size=len(words))).half().eval()
classify = pipeline("text-classification", model=model, tokenizer=tokenizer, device=0)
sentences = [" ".join(random.choices(words[2:], k=32)) for _ in range(given.sentences)]

classify(sentences[:8])
start = time.perf_counter()
if given.batch:
    found = classify(sentences, batch_size=given.batch)
else:
    found = [classify(sentence)[0] for sentence in sentences]
seconds = time.perf_counter() - start
print(f"{1e6 * seconds / len(sentences):.0f} us a sentence, {sum(one['label'] == 'LABEL_1' for one in found)} of {len(found)}")
