#include "watch/scalars/guess.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/text/format.h"

namespace athanor {
namespace {

// "loss=0.41@3 acc=0.9@-": name, value and step of every guess.
std::string Guessed(MetricGuesser& guesser, std::string_view line) {
  std::string text;
  for (const Guess& guess : guesser.Line(line)) {
    if (!text.empty()) text += " ";
    text += fmt::format("{}={}@{}", guess.name, guess.value,
                        guess.step ? std::to_string(*guess.step) : "-");
  }
  return text;
}

TEST(Guess, FindsWhatPeopleAndFrameworksPrint) {
  const struct {
    const char* line;
    const char* expected;
  } cases[] = {
      {"loss=0.41", "loss=0.41@-"},
      {"loss: 0.41", "loss=0.41@-"},
      {"val_acc 0.9", "val_acc=0.9@-"},
      {"step 340/940 loss=0.412 acc=0.881", "loss=0.412@340 acc=0.881@340"},
      {"Epoch 3: train_loss=1e-4, val_loss=2.5E-03", "train_loss=0.0001@3 val_loss=0.0025@3"},
      {"epoch 2 loss nan", "loss=nan@2"},
      {"iter 12, loss: -inf", "loss=-inf@12"},
      {"[epoch 4] Validation accuracy: 91.5%", "validation_accuracy=91.5@4"},
      {"val/loss: 0.5", "val/loss=0.5@-"},
      {"{'loss': 0.41, 'learning_rate': 1e-05, 'epoch': 1.0}", "loss=0.41@1 learning_rate=1e-05@1"},
      {"469/469 [==============================] - 2s 4ms/step - loss: 0.2961 - accuracy: 0.9155",
       "loss=0.2961@- accuracy=0.9155@-"},
      {"Train Epoch: 2 [640/60000 (1%)]\tLoss: 2.300039", "loss=2.300039@60640"},
      {"Test set: Average loss: 0.0263, Accuracy: 9914/10000 (99%)", "average_loss=0.0263@-"},
      {"global_step=1000 lr=0.001 grad_norm=.5", "lr=0.001@1000 grad_norm=0.5@1000"},
      {"perplexity: 32.1.", "perplexity=32.1@-"},
  };
  for (const auto& c : cases) {
    MetricGuesser guesser;
    EXPECT_EQ(Guessed(guesser, c.line), c.expected) << c.line;
  }
}

TEST(Guess, LeavesOtherLinesAlone) {
  for (const char* line : {"", "starting", "listening on port: 8080", "glossy=0.4", "loss", "loss=",
                           "loss=abc", "loss function: mse", "map of 3 rows", "Accuracy: 9/10",
                           "ETA: 12s", "http://x/loss=1/2", "lossy 3", "loss=1.2.3", "acc=12abc"}) {
    MetricGuesser guesser;
    EXPECT_EQ(Guessed(guesser, line), "") << line;
  }
}

TEST(Guess, NumbersStepsOnThroughEpochs) {
  MetricGuesser one;
  EXPECT_EQ(Guessed(one, "Epoch 1/3 step 10/100 loss=3"), "loss=3@10");
  EXPECT_EQ(Guessed(one, "Epoch 2/3 step 10/100 loss=2"), "loss=2@110");
  MetricGuesser zero;
  EXPECT_EQ(Guessed(zero, "epoch 0 step 10/100 loss=3"), "loss=3@10");
  EXPECT_EQ(Guessed(zero, "epoch 1 step 10/100 loss=2"), "loss=2@110");
}

TEST(Guess, CountersNeedATotalThatHoldsThem) {
  EXPECT_EQ(CountersIn("epoch 12/10").size(), 0u);
  EXPECT_EQ(CountersIn("epoch 3/0").size(), 0u);
  EXPECT_EQ(CountersIn("step 5 of 10")[0].total, 10);
  EXPECT_EQ(CountersIn(" 36%|███▌      | 340/940 [00:12<00:21, 27.9it/s]")[0].done, 340);
  EXPECT_EQ(CountersIn("99999999999999999999/1 epoch 99999999999999999999").size(), 0u);
}

}  // namespace
}  // namespace athanor
