// Whether less or more of a metric is better, where its name tells. Most names do not: a learning
// rate or a norm has no best. Pure.

export type Goal = 'minimize' | 'maximize';

const kLess = new Set(['loss', 'error', 'err', 'rmse', 'mse', 'mae', 'mape', 'perplexity', 'ppl', 'wer', 'cer', 'fid', 'nll', 'regret']);
const kMore = new Set(['accuracy', 'acc', 'auc', 'auroc', 'auprc', 'f1', 'precision', 'recall', 'bleu', 'rouge', 'r2', 'map', 'iou', 'miou', 'dice', 'ndcg', 'psnr', 'ssim', 'reward', 'return', 'kappa', 'mcc']);
// Words behind a measure that leave it what it is: loss_val, accuracy/top5, error_mean.
const kAround = new Set(['train', 'training', 'val', 'valid', 'validation', 'test', 'eval', 'dev', 'epoch', 'step', 'batch', 'iter', 'mean', 'avg', 'average', 'best', 'min', 'max', 'final', 'last', 'total', 'macro', 'micro', 'weighted', 'score', 'top1', 'top5', 'rate']);

export function goalOf(metric: string): Goal | undefined {
  const words = metric.replace(/([a-z\d])([A-Z])/g, '$1 $2').toLowerCase().split(/[^a-z\d]+/).filter(Boolean);
  while (words.length > 1 && (kAround.has(words[words.length - 1]!) || /^\d+$/.test(words[words.length - 1]!))) words.pop();
  const last = words[words.length - 1] ?? '';
  return kLess.has(last) ? 'minimize' : kMore.has(last) ? 'maximize' : undefined;
}
