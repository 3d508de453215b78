//! A section of the runbook, and the commands that stand in it.

use std::{cell::RefCell, fs, path::Path, process::Output};

use tidings_testkit::{Part, World, caller::sent};

/// A section, done by a test. Dropping it fails where one of its commands was not run.
pub(super) struct Section {
    name: &'static str,
    left: RefCell<Vec<String>>,
}

impl Section {
    /// The section of this anchor.
    pub(super) fn of(name: &'static str) -> Self {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runbook.md");
        let text = fs::read_to_string(page).unwrap();
        let mut sections = text.split("\n## ").skip(1);
        let anchor = |section: &str| section.lines().next().unwrap_or_default().to_lowercase().replace(' ', "-");
        let section = sections.find(|section| anchor(section) == name);
        let section = section.unwrap_or_else(|| panic!("the runbook has no section `{name}`"));
        // Another chapter may begin behind it.
        let section = section.split("\n# ").next().unwrap_or_default();
        let blocks = section.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
        let lines = blocks.flat_map(str::lines).map(|line| line.split(" #").next().unwrap_or_default().trim());
        let left = RefCell::new(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect());
        Self { name, left }
    }

    /// Runs a command of this section that must succeed, with these words for those in capitals.
    pub(super) async fn run(&self, world: &World, line: &str, words: &[(&str, &str)]) -> String {
        let output = self.output(world, line, words).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {}: {errors}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command of this section.
    pub(super) async fn output(&self, world: &World, line: &str, words: &[(&str, &str)]) -> Output {
        self.take(line);
        let put = |word| words.iter().find(|(name, _)| *name == word).map_or(word, |(_, value)| *value);
        let mut arguments: Vec<&str> = line.split_whitespace().map(put).collect();
        assert_eq!(arguments.remove(0), "tidings", "{line}");
        // Whoever is asked answers at a terminal; here is none.
        if ["redrive", "discard", "forget", "cancel"].iter().any(|asks| arguments.contains(asks)) {
            arguments.push("--yes");
        }
        world.output(&arguments).await
    }

    /// Starts the process that a command of this section starts.
    pub(super) async fn start(&self, world: &World, line: &str, part: Part) {
        self.take(line);
        let role = match part {
            Part::Server => "serve",
            Part::Api(_) => "api",
            Part::Relay(_) => "relay",
            Part::Project(_) => "project",
        };
        assert_eq!(line, format!("tidings {role}"));
        world.start_part(part, &[]).await;
    }

    /// Asks a process by HTTP what a command of this section asks; answers status and body.
    pub(super) async fn ask(&self, world: &World, line: &str, part: Part) -> (u16, String) {
        self.take(line);
        let (_, path) = line.split_once("http://ADDRESS").expect("it says where to");
        let path = path.split_whitespace().next().unwrap();
        let addresses = world.addresses();
        let (_, url) = addresses.iter().find(|(other, _)| *other == part).expect("it runs");
        let mut request = world.client().get(format!("{url}{path}"));
        if line.contains("Bearer") {
            request = request.bearer_auth(world.admin_token().await);
        }
        let answer = sent(request).await;
        (answer.status, answer.text)
    }

    fn take(&self, line: &str) {
        let mut left = self.left.borrow_mut();
        let place = left.iter().position(|other| other == line);
        let place = place.unwrap_or_else(|| panic!("the section `{}` has no `{line}` left: {left:?}", self.name));
        left.remove(place);
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        let left = self.left.borrow();
        assert!(std::thread::panicking() || left.is_empty(), "`{}`: nobody ran {left:?}", self.name);
    }
}
