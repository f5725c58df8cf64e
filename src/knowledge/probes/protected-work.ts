/** Programs and units that keep a host usable: stopping them is never proposed, whatever they hold. */
const PROTECTED: readonly (readonly [RegExp, string])[] = [
  [
    /^(Xorg|X|Xwayland|gnome-shell|gnome-session.*|mutter.*|kwin.*|plasmashell|gdm.*|sddm.*|lightdm.*|display-manager|weston|sway|xfwm4|cinnamon)$/,
    'it draws the desktop',
  ],
  [/^(sshd.*|ssh|dropbear|systemd-logind|tailscaled)$/, 'it lets people log in'],
  [
    /^(dockerd|docker|docker-proxy|containerd.*|conmon|podman|crio|kubelet|k3s.*)$/,
    'it runs the containers of this host',
  ],
  [
    /^(systemd.*|init|user@\d+|dbus.*|polkit.*|NetworkManager|wpa_supplicant|udisksd|snapd|rsyslog.*|cron)$/,
    'it keeps the host running',
  ],
  [/^(dgx-dashboard.*|nvidia-persistenced|nvidia-.*-?daemon|earlyoom)$/, 'it belongs to the host’s own care'],
];

/**
 * Why a program (its short name) or a unit (with or without `.service`) is never proposed to be stopped, or
 * undefined where nothing speaks against it.
 */
export function protectedWhy(name: string): string | undefined {
  const short = name.replace(/\.(service|scope)$/, '').replace(/^\((.*)\)$/, '$1');
  return PROTECTED.find(([form]) => form.test(short))?.[1];
}

/**
 * Units in whose cgroup other people's work runs: jobs of a login that no session tracks, of cron, kernels of the
 * dashboard's notebooks. Such work is a process of its own; the unit is not what holds the memory.
 */
const HOSTS_OTHERS =
  /^(ssh|sshd|dropbear|cron|crond|atd|anacron|dgx-dashboard.*|jupyter.*|user@\d+)\.service$/;

/** Whether a unit is only the place where a process was started. */
export function hostsOthers(unit: string): boolean {
  return HOSTS_OTHERS.test(unit);
}
