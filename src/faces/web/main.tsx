import { render } from 'preact';
import 'uplot/dist/uPlot.min.css';
import './styles/tokens.css';
import './styles/page.css';
import './styles/parts.css';
import { PageStore } from './data/page.ts';
import { App } from './view/app.tsx';

const root = document.getElementById('page');
if (root) {
  const store: PageStore = new PageStore((page) => render(<App page={page} store={store} />, root));
  void store.start();
}
