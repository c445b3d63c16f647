/** The shell around every page. */
export function App() {
  return (
    <main>
      <h1>Stepscope</h1>
    </main>
  );
}
