import { render } from 'preact';

import 'uplot/dist/uPlot.min.css';
import './style/theme.css';
import './style/shell.css';
import './style/parts.css';
import './style/table.css';
import './style/charts.css';
import './style/logs.css';

import { App } from './App';
import { loadJobs } from './state/jobs';
import { startLive } from './state/live';

void loadJobs();
startLive();
render(<App />, document.getElementById('page')!);
