// An address that leads nowhere.
import { Empty } from '../parts/Box';
import { href } from '../state/router';

export function NotFound() {
  return (
    <div class="page">
      <Empty title="There is no such page"><a href={href([])}>Home</a></Empty>
    </div>
  );
}
