//! The questions, in SQL. Each is a file that Apache Spark runs, too.

use holdup_base::named;

named! {
    /// What is asked.
    pub enum Question {
        /// What held the fleet up.
        Causes = "causes",
        /// Which locks.
        Locks = "locks",
        /// In which functions threads waited.
        WaitSites = "wait-sites",
        /// What ran.
        Functions = "functions",
        /// On which kernels and processors.
        Kernels = "kernels",
        /// In which builds of which files.
        Builds = "builds",
        /// Each host's account.
        Hosts = "hosts",
        /// Causes by host, before a day and from it on.
        Changes = "changes",
        /// Each host's accounts, before a day and from it on.
        Sides = "sides",
        /// Days with traces.
        Days = "days",
        /// The causes that cost most, by day.
        Course = "course",
        /// Causes by host.
        HostCauses = "host-causes",
        /// Which traces show a cause best.
        Example = "example",
    }
}

impl Question {
    /// Its text.
    pub const fn sql(self) -> &'static str {
        match self {
            Question::Causes => include_str!("../sql/causes.sql"),
            Question::Locks => include_str!("../sql/locks.sql"),
            Question::WaitSites => include_str!("../sql/wait-sites.sql"),
            Question::Functions => include_str!("../sql/functions.sql"),
            Question::Kernels => include_str!("../sql/kernels.sql"),
            Question::Builds => include_str!("../sql/builds.sql"),
            Question::Hosts => include_str!("../sql/hosts.sql"),
            Question::Changes => include_str!("../sql/changes.sql"),
            Question::Sides => include_str!("../sql/sides.sql"),
            Question::Days => include_str!("../sql/days.sql"),
            Question::Course => include_str!("../sql/course.sql"),
            Question::HostCauses => include_str!("../sql/host-causes.sql"),
            Question::Example => include_str!("../sql/example.sql"),
        }
    }

    /// What a report shows, in this order.
    pub const REPORT: [Question; 6] = [
        Question::Causes,
        Question::Locks,
        Question::WaitSites,
        Question::Functions,
        Question::Builds,
        Question::Kernels,
    ];

    /// What it answers, in a line.
    pub const fn title(self) -> &'static str {
        match self {
            Question::Causes => "What held the fleet up",
            Question::Locks => "Locks",
            Question::WaitSites => "Where threads waited for it",
            Question::Functions => "What ran",
            Question::Kernels => "By kernel and processor",
            Question::Builds => "By build",
            Question::Hosts => "Hosts",
            Question::Changes => "Causes by host, before and after",
            Question::Sides => "Hosts, before and after",
            Question::Days => "Days",
            Question::Course => "Causes by day",
            Question::HostCauses => "Causes by host",
            Question::Example => "Traces that show it best",
        }
    }
}

/// What the questions call tables: rows of traces of the chosen days, whose own row is there. In the order in which they rest on each other.
pub const VIEWS: [(&str, &str); 3] = [
    ("trace", include_str!("../sql/views/trace.sql")),
    ("finding", include_str!("../sql/views/finding.sql")),
    ("function", include_str!("../sql/views/function.sql")),
];
